import pytest

from lifelong_core.errors import ConfigurationError
from lifelong_core.settings import Settings


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIFELONG_CONFIG", raising=False)


def test_defaults_need_no_configuration(tmp_path):
    settings = Settings.load()
    assert settings.resolved_database_url == f"sqlite:///{tmp_path}/lifelong-data/lifelong.db"
    assert settings.resolved_artifacts_url == f"file://{tmp_path}/lifelong-data/artifacts"
    assert settings.host == "127.0.0.1"
    assert not settings.open_access


def test_variables_are_stronger_than_the_file(monkeypatch, tmp_path):
    (tmp_path / "lifelong.toml").write_text(
        "port = 4000\nworkers = 3\n[policy]\nlevel = 0.02\nminimum_samples = 7\n"
    )
    monkeypatch.setenv("LIFELONG_PORT", "5000")
    monkeypatch.setenv("LIFELONG_POLICY__MINIMUM_SAMPLES", "11")
    settings = Settings.load()
    assert (settings.port, settings.workers) == (5000, 3)
    assert (settings.policy.level, settings.policy.minimum_samples) == (0.02, 11)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LIFELONG_PORT", "0"),
        ("LIFELONG_WORKERS", "many"),
        ("LIFELONG_HOST", "clinic.example"),
        ("LIFELONG_POLICY__LEVEL", "1"),
    ],
)
def test_an_illegal_value_is_named(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError) as caught:
        Settings.load()
    assert caught.value.field == variable


def test_a_misspelt_variable_is_refused_with_the_right_name(monkeypatch):
    monkeypatch.setenv("LIFELONG_DATABSE_URL", "postgresql+psycopg://nowhere")
    with pytest.raises(ConfigurationError, match="LIFELONG_DATABASE_URL"):
        Settings.load()


def test_an_unknown_key_in_the_file_is_named(tmp_path):
    (tmp_path / "lifelong.toml").write_text("prot = 4000\n")
    with pytest.raises(ConfigurationError, match="PROT"):
        Settings.load()


def test_a_missing_named_file_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setenv("LIFELONG_CONFIG", str(tmp_path / "nowhere.toml"))
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml"):
        Settings.load()


def test_every_setting_is_documented():
    fields = [
        *Settings.model_fields.items(),
        *Settings.model_fields["policy"].annotation.model_fields.items(),
    ]
    assert [name for name, field in fields if not field.description] == []


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "lifelong.toml").write_text("workers = = 2\n")
    with pytest.raises(ConfigurationError, match=r"lifelong\.toml"):
        Settings.load()


def test_localhost_is_an_address(monkeypatch):
    monkeypatch.setenv("LIFELONG_HOST", "localhost")
    assert Settings.load().host == "127.0.0.1"
