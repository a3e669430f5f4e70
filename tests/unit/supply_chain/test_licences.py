"""Every installed package has a known and permitted licence; others are refused."""

import pytest

from supply_chain.licences import (
    LIST_FILE,
    RefusedLicenceError,
    Rules,
    check_licence,
    declared_licence,
    licence_list,
    licence_of,
)
from supply_chain.packages import OPTIONAL_EXTRAS, SERVING_EXTRAS, pinned_packages


def test_the_list_is_up_to_date_and_all_are_permitted():
    assert LIST_FILE.read_text(encoding="utf-8") == licence_list(), "run: python -m supply_chain.licences"


@pytest.mark.parametrize(
    "licence",
    [
        "AGPL-3.0-only",
        "AGPL-3.0-or-later",
        "BUSL-1.1",
        "SSPL-1.0",
        "GPL-3.0-only",
        "LGPL-3.0-only",
        "MIT AND AGPL-3.0-only",
        "(MIT OR Apache-2.0) AND BUSL-1.1",
        "LicenseRef-Proprietary",
        "Proprietary",
        "",
    ],
)
def test_other_licences_are_refused(licence: str):
    with pytest.raises(RefusedLicenceError, match="some-package"):
        check_licence("some-package", licence, Rules.load())


@pytest.mark.parametrize("licence", ["MIT", "MIT OR AGPL-3.0-only", "Apache-2.0 WITH LLVM-exception AND MIT"])
def test_permitted_ones_pass(licence: str):
    check_licence("some-package", licence, Rules.load())


def test_an_exception_is_for_one_package():
    rules = Rules.load()
    check_licence("psycopg", "LGPL-3.0-only", rules)
    with pytest.raises(RefusedLicenceError, match="not permitted"):
        check_licence("psycopg", "AGPL-3.0-only", rules)


def test_a_package_that_names_no_licence_is_refused():
    with pytest.raises(RefusedLicenceError, match="reviewed"):
        licence_of("scipy", Rules(frozenset({"MIT"}), {}, {}))


def test_only_what_is_needed_is_reviewed_or_excepted():
    rules, packages = Rules.load(), pinned_packages((*SERVING_EXTRAS, *OPTIONAL_EXTRAS))
    assert rules.reviewed.keys() <= packages.keys()
    assert [name for name in rules.reviewed if declared_licence(name) is not None] == []
    plain = Rules(rules.permitted, {}, rules.reviewed)
    for name in rules.exceptions:
        with pytest.raises(RefusedLicenceError):
            check_licence(name, licence_of(name, plain), plain)
