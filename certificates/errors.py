"""What can be wrong with a certificate, a key or a trust store: one class a cause, one line a message."""

from __future__ import annotations

from mechanisms.numbers import InputError


class CertificateError(InputError):
    """Base of all errors of this package: where it stood, what was got, what was expected."""


class TooLargeError(CertificateError):
    """More bytes than are read."""


class TextEncodingError(CertificateError):
    """Not UTF-8 text without a byte order mark, or a string that no UTF-8 text can hold."""


class NestingError(CertificateError):
    """Objects and lists deeper inside each other than are read."""


class NotJsonError(CertificateError):
    """Not one JSON document."""


class FieldNameError(CertificateError):
    """A field name that stands twice in one object, is too long, or cannot be printed."""


class NumberError(CertificateError):
    """A JSON number that is not a whole number of safe size."""


class SchemaError(CertificateError):
    """A field that is missing, unknown, or of the wrong type or form."""


class FileError(CertificateError):
    """A file that cannot be read or written."""


class PermissionsError(CertificateError):
    """A private key or trust store that other users can read or change."""


class KeyRefusedError(CertificateError):
    """A key that is not a sound Ed25519 key."""


class PassphraseError(CertificateError):
    """An encrypted private key without its passphrase."""


class KeyExistsError(CertificateError):
    """A file or a name that is taken and is not overwritten."""


class SigningError(CertificateError):
    """A signer that did not make a valid signature."""


class TrustStoreError(CertificateError):
    """A name or a key that the trust store has not, or has already."""
