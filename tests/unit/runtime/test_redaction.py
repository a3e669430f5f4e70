"""Secrets of URLs, connection strings and headers are masked in every text for users."""

import string
import time
from urllib.parse import quote, urlencode

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as some

from lifelong_core.runtime.redaction import redact

SCHEMES = ["postgresql", "postgresql+psycopg", "s3", "ftp", "https", "simplecache::s3", "sqlite"]
NAMES = [
    "password",
    "sslpassword",
    "PASSWORD",
    "secret",
    "aws_secret_access_key",
    "client_secret",
    "access_key",
    "api-key",
    "AccountKey",
    "key",
    "token",
    "access_token",
    "X-Amz-Security-Token",
    "X-Amz-Signature",
    "X-Amz-Credential",
    "sig",
    "sas",
    "pwd",
    "passphrase",
    "credentials",
]
# It stands in no other part of what is drawn, so that it can be looked for.
SECRETS = some.text(string.ascii_letters + string.digits + "!$%^*~|-_.+", min_size=8, max_size=40).map(
    lambda text: f"Q{text}Z"
)
RAW_SECRETS = some.text(string.ascii_letters + "!$%^*~|:/?#@[]&=;,", min_size=1, max_size=20).map(
    lambda text: f"QJX{text}XJQ"
)
PROSE = some.text(string.ascii_lowercase + " .,:()", max_size=30)


def is_hidden(secret: str, text: str) -> bool:
    shown = redact(text)
    return secret not in shown and quote(secret, safe="") not in shown


@given(some.sampled_from(SCHEMES), SECRETS, PROSE, PROSE)
def test_the_password_of_a_url_is_hidden(scheme: str, secret: str, before: str, after: str) -> None:
    url = f"{scheme}://me:{quote(secret, safe='')}@host:5432/db"
    text = f"{before} {url} {after}"
    assert is_hidden(secret, text)
    assert f"{scheme}://me:***@host:5432/db" in redact(text)


@given(RAW_SECRETS)
def test_a_password_that_nobody_encoded_is_hidden(secret: str) -> None:
    """SQLAlchemy takes such a URL; one with ? or & may be masked up to its end."""
    for url in (f"postgresql://me:{secret}@host/db", f"'s3://me:{secret}@host/db': no such bucket"):
        shown = redact(url)
        assert "QJX" not in shown
        assert "XJQ" not in shown


@given(some.sampled_from(NAMES), SECRETS, some.booleans())
def test_a_secret_in_any_parameter_is_hidden(name: str, secret: str, is_first: bool) -> None:
    others = [("sslmode", "require"), ("application_name", "lifelong")]
    parameters = [(name, secret), *others] if is_first else [*others, (name, secret)]
    text = f"cannot open postgresql://me@host/db?{urlencode(parameters)}: refused"
    assert is_hidden(secret, text)
    assert "sslmode=require" in redact(text)
    assert "me@host/db" in redact(text)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "form",
    [
        "GET /x?{0}={1} HTTP/1.1",
        "/x?a=b;{0}={1}",
        "https://host/x#{0}={1}",
        "host=h {0}={1} dbname=d",
        "host=h {0} = '{1}' dbname=d",
        "connect(host='h', {0}='{1}')",
        "{{'{0}': '{1}', 'host': 'h'}}",
        '{{"{0}": "{1}"}}',
        "DefaultEndpointsProtocol=https;{0}={1};EndpointSuffix=x",
        "{0}={1}",
    ],
)
def test_in_whatever_form_it_stands(name: str, form: str) -> None:
    text = form.format(name, "hunter2hunter2")
    assert "hunter2" not in redact(text)
    assert name in redact(text)


def test_a_secret_with_a_blank_or_a_quote_is_hidden_where_it_is_quoted() -> None:
    assert redact(r"password='my \' pass word' host=h") == "password=*** host=h"


def test_a_name_that_is_percent_encoded_hides_nothing() -> None:
    assert redact("?p%61ssword=geheim") == "?p%61ssword=***"


def test_tokens_and_headers_are_hidden() -> None:
    token = "ll_" + "aB3-_" * 9
    assert redact(f"unknown: {token}.") == "unknown: ***."
    assert redact(f"{{'authorization': 'Bearer {token}'}}") == "{'authorization': ***}"
    assert redact("Authorization: Basic bWU6Z2VoZWlt") == "Authorization: Basic ***"
    assert redact("https://ghp_abcdef@host/x") == "https://***@host/x"


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me@host:5432/db?sslmode=require",
        "http://127.0.0.1:3000/v1/admin/models/resnet@3/heads?environment=clinic-a",
        "http://[::1]:3000/console/interviews/1?item=FP2.6",
        "file:///srv/lifelong/artifacts",
        "the token 'gateway' lacks the scope 'metrics'.",
        "deleted as too old: 3 jobs (environment=clinic, max_tokens=20, monkey=1)",
        "keep: the group key file /data/group.key is older than the last rotation",
        "2026-11-22T18:39:39Z INFO lifelong: worker=1, model=resnet@3",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@given(some.text(max_size=200))
def test_whatever_was_redacted_stays_as_it_is(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(some.text("ab:/@?&=;'\"\\ \nQ%{}[]", max_size=300))
def test_any_text_is_taken(text: str) -> None:
    redact(text)
    assert redact(f"x://u:geheim1@h {text}").startswith("x://")


@pytest.mark.parametrize(
    "unit", ["a", "x://", "x://a:b", "a=", "'a':", "'", "password='", "\\'", "@", "bearer ", "%"]
)
def test_the_time_is_linear_in_the_length(unit: str) -> None:
    """Whoever may write something that is logged must not stop the process."""

    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        started = time.process_time()
        redact(text)
        return time.process_time() - started

    assert seconds(200_000) < 2


def test_sqlalchemy_reads_the_same_password() -> None:
    """The URL that is masked is one that would be used, not a mistake of this test."""
    unencoded = "p/w:x"
    assert sa.make_url(f"postgresql://me:{unencoded}@host/db").password == unencoded
