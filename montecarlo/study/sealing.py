"""The digest that a record has of itself."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

#: What a run.json calls the hash of its own content.
DIGEST = "digest"


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with the digest of its own content.

    It tells a record that was edited by mistake, or half written by another program;
    it is no signature.
    """
    return {**record, DIGEST: digest_of(record)}


def digest_of(record: Mapping[str, Any]) -> str:
    """Return the hash of a record's content, whatever digest it has."""
    content = {name: value for name, value in record.items() if name != DIGEST}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
