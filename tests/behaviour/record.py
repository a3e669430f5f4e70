"""One recording: an installation in a temporary folder, filled and read through service, monitor and command line."""

import json
import os
import platform
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import click
import httpx

from tests import databases
from tests.behaviour import commands, inputs, stored, tour
from tests.behaviour.console import Console
from tests.behaviour.internals import add_training, console_routes
from tests.behaviour.processes import answers, running, until
from tests.behaviour.recording import Api, CommandLine, Recording

MEASURED = re.compile(
    r"(\w*(seconds|bytes|created|process_|python_|timestamp|requests_total|swaps_seen)\w*)[{ ]"
)
"""Metrics whose values are not recorded."""
SETTINGS = {
    "WORKERS": "1",
    "REGISTRY_POLL_SECONDS": "0.05",
    "JOB_POLL_SECONDS": "0.1",
    "WINDOW_SAMPLES": "600",
    "CYCLE_INTERVAL_SECONDS": "86400",
    "CYCLE_NEW_SAMPLES": "0",
    "POLICY__UNUSUAL_TRAFFIC": "report",
    "RETRAINING_PROPOSAL_CYCLES": "1",
    "TRAINING_DEVICES": "[]",
    "MAXIMUM_NEW_ENVIRONMENTS_PER_HOUR": "50",
    "ENVIRONMENT_POLICIES": json.dumps({f"proposed-{one}": {"mode": "propose"} for one in "abcd"}),
}
"""Cycles run when the monitor starts and when they are asked for, so that their order is always the same."""


@contextmanager
def installation(database: str, port: int, recording: Recording) -> Iterator[Path]:
    """A working folder with the environment variables of an installation in it; nothing is initialised."""
    kept = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="behaviour-") as name:
        folder = Path(name)
        for variable in [name for name in os.environ if name.startswith("LIFELONG_")]:
            del os.environ[variable]
        os.environ.update({f"LIFELONG_{name}": value for name, value in SETTINGS.items()})
        (folder / "data").mkdir(mode=0o700)
        for name, text in inputs.KEYS.items():
            (folder / "data" / name).touch(mode=0o600)
            (folder / "data" / name).write_text(text)
        os.environ |= {
            "LIFELONG_DATA_DIRECTORY": str(folder / "data"),
            "LIFELONG_PORT": str(port),
            "LIFELONG_MONITOR_PORT": str(port + 1),
            "LIFELONG_IMAGE_ROOTS": json.dumps([str(folder)]),
            "COLUMNS": "120",
            "NO_COLOR": "1",
        }
        recording.literal |= {
            str(folder): "<DIR>",
            str(port): "<PORT>",
            str(port + 1): "<MONITOR-PORT>",
            platform.node(): "<HOST>",
        }
        try:
            if database == "sqlite":
                yield folder
            else:
                with databases.PostgreSQL() as server:
                    os.environ["LIFELONG_DATABASE_URL"] = url = server.create(migrated=False)
                    recording.literal[url] = "<DATABASE>"
                    recording.literal[url.partition("?")[0].rpartition("/")[2]] = "<DATABASE-NAME>"
                    recording.literal |= {
                        str(server.folder): "<PG>",
                        quote(str(server.folder), safe=""): "<PG>",
                    }
                    yield folder
        finally:
            os.environ.clear()
            os.environ.update(kept)


def record(folder: Path, database: str, port: int) -> None:
    """Write a recording into a folder."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    recording = Recording(folder)
    run = CommandLine(recording)
    started = time.monotonic()

    def tell(what: str) -> None:
        click.echo(f"{time.monotonic() - started:6.1f} s  {what}")

    with installation(database, port, recording) as work:
        here = Path.cwd()
        os.chdir(work)
        try:
            inputs.write_files(work)
            run("init")
            secret = run("tokens create admin --scope admin").strip().splitlines()[-1]
            log = folder.parent / f"{folder.name}-processes.log"
            with running("serve", log):
                until(lambda: answers(f"http://127.0.0.1:{port}/readyz"), "the service")
                api = Api(recording, f"http://127.0.0.1:{port}", secret)
                recording.add("openapi", "GET /openapi.json", json.dumps(api.document, indent=1))
                tell("tour")
                tour.set_up(api)
                tour.predict(api)
                tour.heads(api)
                tour.design(api)
                tour.knowledge(api)
                tour.jobs(api, str(work))
                tell("monitor")
                with running("monitor", log):
                    monitored(api, run, port)
                tell("reading")
                add_training()
                tour.read(api)
                console = Console(recording, api)
                console.crawl()
                commands.read(run, api)
                recording.add("http/GET_metrics", "GET /metrics", metrics(f"http://127.0.0.1:{port}", secret))
                tell("commands")
                console.fill_in(api)
                tour.finish(api)
                commands.change(run, api, secret)
                commands.helps(run)
                stored.documents(recording)
                tour.refuse(api)
                console.refuse()
                commands.last(run)
                missing(recording, api, run, console)
        finally:
            os.chdir(here)
            recording.write()
            tell("written")


def monitored(api: Api, run: CommandLine, port: int) -> None:
    """The first round of a monitor, then the jobs one after the other."""
    until(lambda: answers(f"http://127.0.0.1:{port + 1}/metrics"), "the monitor")
    until(
        lambda: [one for one in api.peek("monitors")["monitors"] if (one["tick"] or {}).get("finished_at")],
        "cycles",
    )

    def idle() -> bool:
        return not any(job["state"] in ("queued", "running") for job in api.peek("jobs?limit=100")["jobs"])

    tour.judge(api)
    until(idle, "the first jobs")
    api.post("populations/remote@1/balanced/labelling-plan", size=20)
    until(idle, "the plan")
    api.post("populations/remote@1/balanced/cycle")
    until(idle, "the cycle")
    api.post(f"cycles/{api.peek('cycles?outcome=swap')['cycles'][0]['id']}/replay")
    until(idle, "the replay")
    commands.monitored(run, api)
    api.recording.add("metrics/monitor", "GET /metrics", metrics(f"http://127.0.0.1:{port + 1}"))
    api.get("monitors")
    run.both("monitors")
    waiting = [one["id"] for one in api.get("cycles?open_proposals=true")["cycles"]]
    api.post(f"cycles/{waiting[0]}/approve")
    api.post(f"cycles/{waiting[1]}/reject", reason="a fair")


def metrics(url: str, token: str = "none") -> str:
    """A page of metrics, the samples of each metric sorted; values that depend on time and machine are left out."""
    lines = httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}).text.splitlines()
    families: list[list[str]] = []
    for line in lines:
        if line.startswith("# HELP"):
            families.append([])
        families[-1].append(re.sub(r" \S+$", " <VALUE>", line) if MEASURED.match(line) else line)
    return "\n".join(line for family in sorted(families) for line in (*family[:2], *sorted(family[2:])))


def missing(recording: Recording, api: Api, run: CommandLine, console: Console) -> None:
    """Record which routes, commands and pages have no observation of their own."""
    lines = [
        f"not recorded: {method} {path}"
        for method, path in api.operations
        if not recording.has(f"http/{api.item(method, path)}")
    ]
    lines += [
        f"recorded by --help only: lifelong {name}"
        for name in run.commands()
        if not recording.has(f"commands/{name}")
    ]
    for method, path in console_routes():
        pattern = re.sub(r"\{[^/}]*\}", "[^/]+", path)
        if not any(re.fullmatch(pattern, seen) for seen in console.seen[method]):
            lines.append(f"not recorded: {method} {path}")
    recording.add("not_recorded", "routes, commands and pages without an observation", "\n".join(lines))
    click.echo("\n".join(lines))
