import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from lifelong_core.develop.knowledge.signing import SigningKey, check_public_key, is_signed_by
from lifelong_core.values.errors import InvalidInputError

# RFC 8032, section 7.1, test 2
SECRET = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
PUBLIC = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"
SIGNATURE = (
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)
PKCS8 = "302e020100300506032b657004220420"


def reference_key() -> SigningKey:
    from base64 import b64encode

    body = b64encode(bytes.fromhex(PKCS8 + SECRET))
    return SigningKey.from_pem(b"-----BEGIN PRIVATE KEY-----\n" + body + b"\n-----END PRIVATE KEY-----\n")


def test_signatures_are_those_of_the_standard() -> None:
    key = reference_key()
    assert key.public_key == PUBLIC
    assert key.sign(b"\x72").hex() == SIGNATURE
    assert is_signed_by(PUBLIC, b"\x72", bytes.fromhex(SIGNATURE))


def test_another_message_key_or_signature_is_not_signed() -> None:
    signature = bytes.fromhex(SIGNATURE)
    assert not is_signed_by(PUBLIC, b"\x73", signature)
    assert not is_signed_by(SigningKey.generate().public_key, b"\x72", signature)
    assert not is_signed_by(PUBLIC, b"\x72", signature[:-1])
    assert not is_signed_by(PUBLIC, b"\x72", bytes(64))
    assert not is_signed_by("00" * 31, b"\x72", signature)


def test_a_key_survives_its_file() -> None:
    key = SigningKey.generate()
    again = SigningKey.from_pem(key.to_pem())
    assert again.public_key == key.public_key
    assert SigningKey.generate().public_key != key.public_key


@pytest.mark.parametrize("kind", ["text", "public", "other", "password"])
def test_other_files_are_refused(kind: str) -> None:
    other = generate_private_key(SECP256R1())
    key = load_pem_private_key(SigningKey.generate().to_pem(), None)
    content = {
        "text": b"no key",
        "public": b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        "other": other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "password": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")),
    }[kind]
    with pytest.raises(InvalidInputError, match="Ed25519") as caught:
        SigningKey.from_pem(content)
    assert caught.value.field == "key"


def test_public_keys_are_checked() -> None:
    assert check_public_key(PUBLIC.upper()) == PUBLIC
    for wrong in (PUBLIC[:-1], PUBLIC + "\n", "g" * 64, ""):
        with pytest.raises(InvalidInputError, match="64 hexadecimal"):
            check_public_key(wrong)


@pytest.mark.parametrize("key", ["0" * 64, "01" + "0" * 62, "ec" + "f" * 60 + "7f"])
def test_a_key_whose_signatures_anyone_can_make_is_refused(key: str) -> None:
    with pytest.raises(InvalidInputError, match="no owner"):
        check_public_key(key)
