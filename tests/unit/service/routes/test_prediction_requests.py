"""Numpy files with broken headers are errors of the client: a header is a Python expression and fails as one."""

import zipfile
from io import BytesIO

import pytest

from tests.unit.service.conftest import Service
from tests.unit.service.routes.test_operations import error_of

HEADERS = [
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}}}",
    b"'''unended",
    b"{'descr': '<f4',\n  'a': 1,\n 'b'}",
    b"[" * 5000,
    b"{{}: 1}",
    b"\xff\xfe",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999, 3)}",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 9223372036854775807)}",
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1000000000000000000000)}",
]


@pytest.fixture
def service(shared: Service) -> Service:
    return shared.counting_anew()


def npy(header: bytes, version: int) -> bytes:
    size = (len(header) + 1).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + b"\n" + bytes(0 if b"(0," in header else 24)


def test_a_corrupt_header_names_the_field(service: Service) -> None:
    for header, version in (*((header, 1) for header in HEADERS), (HEADERS[0], 2), (HEADERS[4], 2)):
        answer = service.client.post(
            "/v1/logits", content=npy(header, version), headers={"Content-Type": "application/x-npy"}
        )
        assert answer.status_code == 422
        assert error_of(answer)["field"] == "logits"
        file = BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("logits.npy", npy(header, version))
            archive.writestr("labels.npy", npy(header, version))
        answer = service.client.post(
            "/v1/admin/models/linear/calibration-sets",
            content=file.getvalue(),
            headers={"Content-Type": "application/x-npz"},
        )
        assert answer.status_code == (413 if b"99999999999999" in header else 422)
        assert error_of(answer)["field"] == "calibration_set"


@pytest.mark.parametrize("position", [0, 6, 8, 26, -22, -12])
def test_a_damaged_archive_names_the_field(service: Service, position: int) -> None:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("logits.npy", npy(HEADERS[0], 1))
        archive.writestr("labels.npy", npy(HEADERS[0], 1))
    body = bytearray(file.getvalue())
    body[position] ^= 0x5F
    answer = service.client.post(
        "/v1/admin/models/linear/calibration-sets",
        content=bytes(body),
        headers={"Content-Type": "application/x-npz"},
    )
    assert answer.status_code == 422
    assert error_of(answer)["field"] == "calibration_set"
