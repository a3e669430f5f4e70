"""Ed25519 signatures (RFC 8032) of bundles.

Each function imports cryptography itself, so that a serving process starts without it.
"""

import re
from typing import TYPE_CHECKING

from lifelong_core.values.errors import InvalidInputError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNATURE_BYTES = 64


class SigningKey:
    """A private key; others check its signatures with `public_key`."""

    def __init__(self, key: "Ed25519PrivateKey") -> None:
        self._key = key

    @classmethod
    def generate(cls) -> "SigningKey":
        """A new key, from the randomness of the operating system."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, content: bytes) -> "SigningKey":
        """Return the key of a PEM file (PKCS 8, without a password), as `to_pem` or openssl write it.

        Raises:
            InvalidInputError: no such file, or one with a key of another type or with a password.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key(content, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise _not_a_key() from error
        if not isinstance(key, Ed25519PrivateKey):
            raise _not_a_key()
        return cls(key)

    def to_pem(self) -> bytes:
        """The private key as a PEM file; with it, anyone can sign in the name of its owner."""
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        return self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @property
    def public_key(self) -> str:
        """64 hexadecimal digits."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> bytes:
        """Signature of 64 bytes, equal for equal messages."""
        return self._key.sign(message)


def check_public_key(value: str, *, field: str = "public_key") -> str:
    """A legal public key, in lower case.

    Raises:
        InvalidInputError: it has not 64 hexadecimal digits.
    """
    if not re.fullmatch("[0-9a-fA-F]{64}", value):
        raise InvalidInputError(
            "expected a public key of 64 hexadecimal digits.",
            field=field,
            hint="`lifelong knowledge key` prints it beside the private key that it writes.",
        )
    if _is_weak(value):
        raise InvalidInputError(
            "this public key has no owner: signatures of it can be made without a private key.",
            field=field,
            hint="Ask the signer for the key that `lifelong knowledge key` prints.",
        )
    return value.lower()


def is_signed_by(public_key: str, message: bytes, signature: bytes) -> bool:
    """Whether the owner of this public key (64 hexadecimal digits) signed the message."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key)).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _is_weak(public_key: str) -> bool:
    """Whether the point has a small order, such as 64 zeros: then the identity with 0 signs one message in eight."""
    forged = b"\1" + bytes(SIGNATURE_BYTES - 1)
    return any(is_signed_by(public_key, bytes([message]), forged) for message in range(256))


def _not_a_key() -> InvalidInputError:
    return InvalidInputError(
        "expected a PEM file with an Ed25519 private key without a password.",
        field="key",
        hint="Make one with `lifelong knowledge key`.",
    )
