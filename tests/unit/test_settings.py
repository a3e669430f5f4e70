import dataclasses
import math
import re

import pytest
from pydantic import ValidationError

from lifelong_core.configuration.policy_fields import PolicyFields
from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.deploy import AdaptationPolicy
from lifelong_core.deploy.adaptation.adapt import DEFAULT_QUANTIFIER
from lifelong_core.store import NAME_PATTERN, Store
from lifelong_core.store.engine.database import parse_url
from lifelong_core.store.engine.errors import sqlite_file
from lifelong_core.values.errors import ConfigurationError, InvalidInputError


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


def test_the_data_directory_may_have_any_name(tmp_path):
    folder = tmp_path / "feature%2Ffoo?a=b#c d é::memory:@x:y&z"
    settings = Settings(data_directory=folder)
    assert sqlite_file(parse_url(settings.resolved_database_url)) == folder / "lifelong.db"
    Store.migrate(settings.resolved_database_url)
    with Store.from_settings(settings) as store:
        digest = store.artifacts.put(b"content")
        assert store.artifacts.get(digest) == b"content"
    assert {path.name for path in folder.iterdir()} >= {"lifelong.db", "artifacts"}
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


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
        ("LIFELONG_ROOT_PATH", "lifelong"),
        ("LIFELONG_ROOT_PATH", "/lifelong?x=1"),
        ("LIFELONG_ROOT_PATH", "/../lifelong"),
        ("LIFELONG_ROOT_PATH", "/console"),
        ("LIFELONG_POLICY__LEVEL", "1"),
    ],
)
def test_an_illegal_value_is_named(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError) as caught:
        Settings.load()
    assert caught.value.field == variable


def test_threads_for_every_core_in_every_worker_are_refused(monkeypatch):
    monkeypatch.setenv("LIFELONG_INTRA_OP_THREADS", "0")
    with pytest.raises(ConfigurationError, match="at least 1 thread") as caught:
        Settings.load()
    assert caught.value.field == "LIFELONG_INTRA_OP_THREADS"
    assert "Leave the setting out" in caught.value.hint


def test_a_misspelt_variable_is_refused_with_the_right_name(monkeypatch):
    monkeypatch.setenv("LIFELONG_DATABSE_URL", "postgresql+psycopg://nowhere")
    with pytest.raises(ConfigurationError, match="LIFELONG_DATABASE_URL"):
        Settings.load()


def test_an_unknown_key_in_the_file_is_named(tmp_path):
    (tmp_path / "lifelong.toml").write_text("prot = 4000\n")
    with pytest.raises(
        ConfigurationError, match=r"lifelong\.toml: prot: there is no such field\. Did you mean port\?"
    ):
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


def test_the_policy_settings_are_those_of_the_domain():
    """The same names, the same defaults, and what one refuses the other refuses too; label errors belong to a task."""
    own = {"label_error_rates": ()}
    assert {**PolicySettings().model_dump(), **own} == dataclasses.asdict(AdaptationPolicy())


def test_cycles_use_the_quantifier_that_the_domain_uses_by_default():
    assert Settings().quantifier == DEFAULT_QUANTIFIER


def beyond(item):
    """Values that the declaration of a policy's field excludes."""
    limits = item.metadata["limits"]
    if item.type in (int, float):
        yield math.nan
        yield math.inf
    else:
        yield 7
    if item.type not in (int, float, bool):
        yield "ignore"
    yield from (limits[name] for name in ("gt", "lt") if name in limits)
    if "ge" in limits:
        yield limits["ge"] - 0.1
    if "le" in limits:
        yield limits["le"] * 1.1


@pytest.mark.parametrize("item", dataclasses.fields(PolicyFields), ids=lambda item: item.name)
def test_settings_and_domain_accept_and_refuse_the_same_values_of_a_policy(item):
    for limit in ("ge", "le"):
        if limit in item.metadata["limits"]:
            values = {item.name: item.metadata["limits"][limit]}
            assert getattr(AdaptationPolicy(**values), item.name) == values[item.name]
            assert getattr(PolicySettings(**values), item.name) == values[item.name]
    for value in beyond(item):
        with pytest.raises(ValidationError, match=item.name):
            PolicySettings(**{item.name: value})
        with pytest.raises(InvalidInputError) as raised:
            AdaptationPolicy(**{item.name: value})
        assert raised.value.field == item.name


def test_an_environment_has_the_common_policy_with_its_own_values_on_top(monkeypatch, tmp_path):
    (tmp_path / "lifelong.toml").write_text(
        "[policy]\nlevel = 0.02\nminimum_gain = 0.1\n"
        '[environment_policies."hospital-a"]\nmode = "propose"\nminimum_gain = 0.005\n'
        "[environment_policies.scanner_2]\npooling = true\n"
    )
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_POLICIES__HOSPITAL-A__HYSTERESIS", "3")
    settings = Settings.load()
    assert settings.policy_for("elsewhere") == settings.policy
    policy = settings.policy_for("hospital-a")
    assert (policy.level, policy.mode, policy.hysteresis) == (0.02, "propose", 3)
    # what it sets it sets, although that is the default of the setting
    assert policy.minimum_gain == 0.005
    assert settings.policy_for("scanner_2") == settings.policy.model_copy(update={"pooling": True})


def test_environment_policies_as_json(monkeypatch):
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_POLICIES", '{"hospital-a": {"mode": "shadow"}}')
    assert Settings.load().policy_for("hospital-a") == PolicySettings(mode="shadow")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (
            '{"hospital-a": {"moed": "shadow"}}',
            r"^LIFELONG_ENVIRONMENT_POLICIES: hospital-a\.moed: .* Did you mean mode\?",
        ),
        (
            '{"hospital-a": {"mode": "shadwo"}}',
            r"^LIFELONG_ENVIRONMENT_POLICIES: hospital-a\.mode: .* Did you mean shadow\?",
        ),
        ('{"Hospital A": {"mode": "shadow"}}', "Hospital A"),
        ('{"hospital-a"', "LIFELONG_ENVIRONMENT_POLICIES: this is not JSON"),
    ],
)
def test_a_mistake_in_an_environments_policy_is_named(monkeypatch, text, named):
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_POLICIES", text)
    with pytest.raises(ConfigurationError, match=named):
        Settings.load()


@pytest.mark.parametrize("name", ["a", "a" * 64, "0.x_y-z", "", "a" * 65, "-a", "A", "a b", "a\n", "ä"])
def test_environment_policies_take_exactly_the_names_that_environments_can_have(name):
    try:
        Settings(environment_policies={name: {}})
        legal = True
    except ValidationError:
        legal = False
    assert legal is bool(re.fullmatch(NAME_PATTERN, name))


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "lifelong.toml").write_text("workers = = 2\n")
    with pytest.raises(ConfigurationError, match=r"lifelong\.toml"):
        Settings.load()


def test_localhost_is_an_address(monkeypatch):
    monkeypatch.setenv("LIFELONG_HOST", "localhost")
    assert Settings.load().host == "127.0.0.1"


def test_a_proxy_is_an_address_or_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIFELONG_TRUSTED_PROXIES", '["10.0.0.7", "10.1.0.5/16", "::1"]')
    assert Settings.load().trusted_proxies == ("10.0.0.7/32", "10.1.0.0/16", "::1/128")
    monkeypatch.setenv("LIFELONG_TRUSTED_PROXIES", '["proxy.example"]')
    with pytest.raises(ConfigurationError, match="an IP address or a network"):
        Settings.load()


def test_label_error_rates_are_by_class_of_a_task(tmp_path):
    (tmp_path / "lifelong.toml").write_text(
        'label_error_rate = 0.01\n[task_label_error_rates.lesions]\n"basal cell" = 0.2\n'
    )
    settings = Settings.load()
    assert settings.label_error_rates("lesions", ("nevus", "basal cell")) == {
        "nevus": 0.01,
        "basal cell": 0.2,
    }
    assert settings.label_error_rates("chest", ("a", "b")) == {"a": 0.01, "b": 0.01}
    assert Settings().label_error_rates("chest", ("a",)) == {"a": 0.01}


def test_label_error_rates_are_zero_by_default():
    assert Settings().label_error_rates("chest", ("a", "b")) == {"a": 0.0, "b": 0.0}


def test_a_label_error_rate_of_a_class_that_is_not_there_names_the_classes(monkeypatch):
    monkeypatch.setenv("LIFELONG_TASK_LABEL_ERROR_RATES", '{"lesions": {"melanom": 0.05}}')
    with pytest.raises(ConfigurationError, match="nevus, melanoma") as caught:
        Settings.load().label_error_rates("lesions", ("nevus", "melanoma"))
    assert caught.value.field == "LIFELONG_TASK_LABEL_ERROR_RATES: lesions.melanom"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LIFELONG_LABEL_ERROR_RATE", "-0.1"),
        ("LIFELONG_LABEL_ERROR_RATE", "1"),
        ("LIFELONG_LABEL_ERROR_RATE", "nan"),
        ("LIFELONG_TASK_LABEL_ERROR_RATES", '{"lesions": {"melanoma": 1.5}}'),
        ("LIFELONG_TASK_LABEL_ERROR_RATES", '{"lesions": {"melanoma": NaN}}'),
        ("LIFELONG_TASK_LABEL_ERROR_RATES", '{"lesions": 0.1}'),
        ("LIFELONG_TASK_LABEL_ERROR_RATES", '{"No Task": {"a": 0.1}}'),
    ],
)
def test_an_illegal_label_error_rate_is_refused(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError) as caught:
        Settings.load()
    assert caught.value.field.startswith(variable)
