"""The service behind nginx, configured as docs/operating.md says, and on IPv4 and IPv6 at once."""

import http.client
import json
import re
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from tests import tools
from tests.integration.installation import Installation, image, install
from tests.integration.processes import (
    PATIENCE_SECONDS,
    Reply,
    Service,
    eventually,
    running_service,
)
from tests.ports import free_port

DOCUMENT = Path(__file__).parents[2] / "docs" / "operating.md"
NAME = "lifelong.clinic.example"
PREFIX = "/lifelong"
FAILED_LOGINS = 3


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    return install(tmp_path_factory.mktemp("proxy"))


@pytest.fixture(scope="module")
def service(installation: Installation) -> Iterator[Service]:
    """One worker on all addresses, below a path, behind proxies of this machine."""
    tools.need(tools.IPV6)
    with running_service(
        installation.settings.data_directory.parent,
        installation.token,
        workers=1,
        host="::",
        root_path=PREFIX,
        trusted_proxies='["127.0.0.1", "::1"]',
        failed_logins_per_minute=FAILED_LOGINS,
    ) as started:
        started.wait_until_ready()
        yield started


@dataclass(frozen=True)
class Proxy:
    """nginx before a service."""

    port: int
    certificate: Path
    token: str

    def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        to: str = "127.0.0.1",
        source: str = "",
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Reply:
        """Send one request over TLS, with the token unless the headers have one."""
        context = ssl.create_default_context(cafile=self.certificate)
        context.check_hostname = False  # it is reached by its address
        connection = http.client.HTTPSConnection(
            to, self.port, timeout=30, context=context, source_address=(source, 0) if source else None
        )
        sent = (("Host", NAME), ("Content-Length", str(len(body))), *headers)
        if not any(name in ("Authorization", "Cookie") for name, _ in headers):
            sent = (*sent, ("Authorization", f"Bearer {self.token}"))
        began = time.monotonic()
        with closing(connection):
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent:
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            content = response.read()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, found, content, began, time.monotonic())


@pytest.fixture(scope="module")
def proxy(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The configuration of the document; only ports and files are those of the test."""
    program, folder, port = tools.program(tools.NGINX), tmp_path_factory.mktemp("nginx"), free_port()
    certificate, key = folder / "lifelong.pem", folder / "lifelong.key"
    make = (
        f"{tools.program(tools.OPENSSL)} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={NAME}".split()
    )
    subprocess.run([*make, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    server, below = re.findall(r"```nginx\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    text = f"{server.rstrip().removesuffix('}')}{below}}}\n"
    for documented, own in (
        ("127.0.0.1:3000", f"127.0.0.1:{service.port}"),
        ("listen 443 ssl", f"listen {port} ssl"),
        ("listen [::]:443 ssl", f"listen [::]:{port} ssl"),
        ("/etc/ssl/lifelong.pem", str(certificate)),
        ("/etc/ssl/lifelong.key", str(key)),
    ):
        assert documented in text
        text = text.replace(documented, own)
    folders = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{name}_temp_path {folder / name};\n" for name in folders)
    configuration = folder / "nginx.conf"
    configuration.write_text(
        f"daemon off; user root; pid {folder / 'nginx.pid'}; error_log {folder / 'error.log'};\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{places}{text}}}\n"
    )
    with (folder / "output.log").open("wb") as output:
        process = subprocess.Popen([program, "-p", folder, "-c", configuration], stdout=output, stderr=output)
    found = Proxy(port, certificate, service.token or "")
    try:
        eventually(lambda: _answers(process, found, folder / "output.log"), "nginx to answer")
        yield found
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


def _answers(process: subprocess.Popen[bytes], proxy: Proxy, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        return proxy.send("GET", "/livez").status == 200
    except OSError:
        return False


def source_of(service: Service, name: str) -> str:
    """The source of the change that made an environment, as the audit log has it."""
    (entry,) = service.send("GET", f"/v1/admin/audit?subject={name}").body["audit"]
    return entry["source"]


@pytest.mark.parametrize(("to", "source"), [("127.0.0.1", "127.0.0.5"), ("::1", "::1")], ids=["IPv4", "IPv6"])
def test_nginx_names_the_client_whatever_the_client_says(
    proxy: Proxy, service: Service, to: str, source: str
) -> None:
    name = f"from-{'6' if ':' in to else '4'}"
    made = proxy.send(
        "POST",
        "/v1/admin/environments",
        json.dumps({"name": name}).encode(),
        to=to,
        source=source,
        headers=(("Content-Type", "application/json"), ("X-Forwarded-For", "198.51.100.7")),
    )
    assert made.status == 201
    assert source_of(service, name) == source


def test_predictions_pass_nginx_and_its_limits_hold(proxy: Proxy) -> None:
    predicted = proxy.send("POST", f"{PREFIX}/v1/predict", image(), headers=(("Content-Type", "image/png"),))
    assert predicted.status == 200
    assert predicted.body["label"]
    for path in ("/metrics", f"{PREFIX}/metrics"):
        assert proxy.send("GET", path).status == 403
    assert proxy.send("POST", "/v1/predict", bytes(21 * 2**20)).status == 413
    archive = (("Content-Type", "application/zip"),)
    large = proxy.send("POST", "/v1/admin/tasks/skin/fingerprints", bytes(21 * 2**20), headers=archive)
    assert (large.status, large.body["error"]["field"]) == (422, "body")  # the service has read it


def test_what_is_ambiguous_is_refused_behind_nginx_too(proxy: Proxy) -> None:
    group = ("X-Lifelong-Group", "4711")
    for headers in (
        (group, group),
        (("Authorization", f"Bearer {proxy.token}"),) * 2,
        (("Host", "other.example"),),
        (("Transfer-Encoding", "chunked"),),
    ):
        assert proxy.send("GET", "/v1/admin/tasks", headers=headers).status == 400, headers


def test_the_console_works_below_a_path_of_nginx(proxy: Proxy) -> None:
    start = proxy.send("GET", f"{PREFIX}/", headers=(("Cookie", "none=1"),))
    assert (start.status, start.headers["location"]) == (307, f"{PREFIX}/console")
    form = urlencode({"token": proxy.token}).encode()
    headers = (("Content-Type", "application/x-www-form-urlencoded"), ("Origin", f"https://{NAME}"))
    login = proxy.send("POST", f"{PREFIX}/console/login", form, headers=headers)
    assert (login.status, login.headers["location"]) == (303, f"{PREFIX}/console")
    cookie = login.headers["set-cookie"]
    assert "; Secure" in cookie
    assert f"; Path={PREFIX}/console" in cookie
    page = proxy.send("GET", f"{PREFIX}/console", headers=(("Cookie", cookie.partition(";")[0]),))
    assert page.status == 200
    foreign = (*headers[:1], ("Origin", "https://evil.example"))
    assert proxy.send("POST", f"{PREFIX}/console/login", form, headers=foreign).status == 403


def direct(service: Service, method: str, path: str, body: bytes, to: str, **headers: str) -> Reply:
    """One request to the service itself, from and to an address of this machine."""
    connection = http.client.HTTPConnection(to, service.port, timeout=30, source_address=(to, 0))
    sent = {"Authorization": f"Bearer {service.token}", "Content-Type": "application/json"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    with closing(connection):
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        content = response.read()
        return Reply(response.status, dict(response.getheaders()), content, 0, 0)


@pytest.mark.parametrize(
    ("peer", "expected"), [("127.0.0.1", "2001:db8::7"), ("::1", "2001:db8::7"), ("127.0.0.2", "127.0.0.2")]
)
def test_only_a_proxy_is_believed_on_a_socket_of_both_protocols(
    service: Service, peer: str, expected: str
) -> None:
    """There, IPv4 addresses are mapped to IPv6."""
    name = f"peer-{peer.replace(':', '-')}".replace("--", "6-")
    body = json.dumps({"name": name}).encode()
    made = direct(service, "POST", "/v1/admin/environments", body, peer, X_Forwarded_For="2001:db8::7")
    assert made.status == 201
    assert source_of(service, name) == expected


def test_logins_are_counted_for_the_network_of_a_customer(service: Service) -> None:
    form = {"Content_Type": "application/x-www-form-urlencoded", "Sec_Fetch_Site": "same-origin"}

    def status(client: str) -> int:
        body = b"token=ll_wrong"
        return direct(service, "POST", "/console/login", body, "::1", X_Forwarded_For=client, **form).status

    assert [status(f"2001:db8:0:7::{host}") for host in range(FAILED_LOGINS + 1)] == [401] * 3 + [429]
    assert status("2001:db8:0:8::1") == 401


def test_commands_reach_a_service_by_ipv6(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "labels.csv"
    file.write_text("prediction_id,label\n00000000-0000-0000-0000-000000000001,0\n")
    url = f"http://[::1]:{service.port}"
    done = CliRunner().invoke(
        cli, ["feedback", "import", str(file), "--url", url, "--token", service.token or ""]
    )
    assert "1 unknown" in done.output, done.output
