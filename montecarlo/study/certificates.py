"""Certificates of a cluster of this machine, which alone needs what makes them."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

#: How long before now a certificate is valid from, should the clock be set back, and
#: after it.
DAY, YEAR = timedelta(days=1), timedelta(days=365)


def make_certificate() -> tuple[str, str]:
    """Return a new certificate, signed by itself, and its key, as PEM.

    Those that `Security.temporary` of Dask makes are valid from now on: where the clock
    is set back a cluster with these never comes up.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dask-internal")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + YEAR)
        .sign(key, hashes.SHA256())
    )
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(encoding, form, serialization.NoEncryption())
    return certificate.public_bytes(encoding).decode(), secret.decode()
