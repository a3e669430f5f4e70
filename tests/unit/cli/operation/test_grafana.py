"""`lifelong grafana export`: what is written, and what is never overwritten."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong.monitoring_files import export_monitoring_files, monitoring_files
from lifelong_core.values.errors import ConfigurationError, ConflictError, InvalidInputError
from tests import tools

SHIPPED = Path(__file__).parents[4] / "grafana"


def test_all_files_are_written_as_they_are_shipped(tmp_path: Path) -> None:
    outcome = export_monitoring_files(tmp_path / "new" / "folder")
    written = {
        path.relative_to(tmp_path / "new" / "folder").as_posix()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert set(outcome.written) == written
    assert {
        "alertmanager/alertmanager.yml",
        "dashboards/lifelong-overview.json",
        "prometheus/prometheus.yml",
        "prometheus/records.yml",
        "prometheus/rules.yml",
        "prometheus/rules_test.yml",
        "provisioning/dashboards/lifelong.yml",
        "provisioning/datasources/prometheus.yml",
    } <= written
    for name in written:
        assert (tmp_path / "new" / "folder" / name).read_bytes() == (SHIPPED / name).read_bytes()


def test_a_changed_file_is_kept_and_nothing_is_written_beside_it(tmp_path: Path) -> None:
    export_monitoring_files(tmp_path)
    (tmp_path / "prometheus" / "rules.yml").write_text("groups: []")
    (tmp_path / "dashboards" / "lifelong-overview.json").unlink()
    with pytest.raises(ConflictError, match=r"prometheus/rules\.yml"):
        export_monitoring_files(tmp_path)
    assert (tmp_path / "prometheus" / "rules.yml").read_text() == "groups: []"
    assert not (tmp_path / "dashboards" / "lifelong-overview.json").exists()


def test_replace_replaces_what_was_changed_and_leaves_the_rest(tmp_path: Path) -> None:
    export_monitoring_files(tmp_path)
    (tmp_path / "prometheus" / "rules.yml").write_text("groups: []")
    (tmp_path / "prometheus" / "own.yml").write_text("groups: []")
    outcome = export_monitoring_files(tmp_path, replace=True)
    assert outcome.written == ("prometheus/rules.yml",)
    assert len(outcome.unchanged) == len(monitoring_files()) - 1
    assert (tmp_path / "prometheus" / "own.yml").read_text() == "groups: []"


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        export_monitoring_files(tmp_path / "file" / "folder")


def test_links_lead_to_the_given_addresses_and_the_tests_of_the_rules_still_pass(tmp_path: Path) -> None:
    options = [
        "--service-url",
        "https://lifelong.example.org/",
        "--grafana-url",
        "https://charts.example.org",
    ]
    result = CliRunner().invoke(cli, ["grafana", "export", str(tmp_path), *options], catch_exceptions=False)
    assert result.exit_code == 0
    rules = (tmp_path / "prometheus" / "rules.yml").read_text()
    assert "runbook_url: https://lifelong.example.org/console/runbooks/LifelongServiceDown\n" in rules
    assert "dashboard_url: https://charts.example.org/d/lifelong-service\n" in rules
    assert "127.0.0.1" not in rules
    tested = subprocess.run(
        [tools.program(tools.PROMTOOL), "test", "rules", tmp_path / "prometheus" / "rules_weeks_test.yml"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_runbooks_may_lie_elsewhere_than_the_console() -> None:
    files = monitoring_files(service="https://a.example", runbooks="https://wiki.example/runbooks")
    assert (
        b"runbook_url: https://wiki.example/runbooks/LifelongServiceDown\n" in files["prometheus/rules.yml"]
    )


@pytest.mark.parametrize(
    "address", ["grafana.example.org", "https://a b", "https://a?x=1", "javascript:alert(1)"]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InvalidInputError, match="no address"):
        monitoring_files(grafana=address)


def test_the_command_says_what_it_wrote_and_what_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my monitoring"
    monkeypatch.setenv("LIFELONG_PORT", "3100")
    result = CliRunner().invoke(cli, ["grafana", "export", str(folder)], catch_exceptions=False)
    assert result.exit_code == 0
    assert f"wrote {folder / 'prometheus' / 'rules.yml'}" in result.output
    assert "127.0.0.1:3100" in result.output
    again = CliRunner().invoke(cli, ["grafana", "export", str(folder)], catch_exceptions=False)
    assert f"{len(monitoring_files())} files are there already" in again.output
    (check,) = (line.strip() for line in result.output.splitlines() if "promtool" in line)
    tools.program(tools.PROMTOOL)
    checked = subprocess.run(check, shell=True, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr
