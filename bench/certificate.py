"""A certificate for localhost, made anew for each run, of the kind most servers have today (ECDSA, P-256)."""

from __future__ import annotations

from functools import cache

from bench.native import scratch
from bench.process import Failed


@cache
def certificate() -> dict[str, str]:
    """Paths of `certificate` and `key`. Raises Failed without trustme."""
    try:
        import trustme
    except ImportError:
        raise Failed("needs trustme (pip install '.[bench]')") from None
    kind = trustme.KeyType.ECDSA
    issued = trustme.CA(key_type=kind).issue_cert("localhost", key_type=kind)
    paths = {"certificate": scratch() / "certificate.pem", "key": scratch() / "key.pem"}
    issued.cert_chain_pems[0].write_to_path(paths["certificate"])
    issued.private_key_pem.write_to_path(paths["key"])
    return {name: str(path) for name, path in paths.items()}
