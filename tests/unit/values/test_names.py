import pytest

from lifelong_core.store import check_name
from lifelong_core.values.errors import InvalidInputError


@pytest.mark.parametrize("name", ["a", "0", "site-a.b_c", "a" * 64])
def test_legal_names(name: str):
    assert check_name(name, field="environment") == name


@pytest.mark.parametrize(
    "name", ["", "a" * 65, "A", "-a", ".a", "a b", "a/b", "ä", "a\n", "'; DROP TABLE tasks; --"]
)
def test_illegal_names(name: str):
    with pytest.raises(InvalidInputError, match=r"^environment: ") as refused:
        check_name(name, field="environment")
    assert refused.value.field == "environment"
