"""What S3 and DynamoDB say, in the words of our error tree. Needs botocore."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from compaction_ledger.domain.errors import (
    InvalidSetting,
    LedgerReadOnly,
    StoreError,
    StoreUnavailable,
)


class _NotInstalled(Exception):
    """Stands for botocore's errors where it is not installed: then nobody raises them."""


def _botocore(name: str) -> type[Exception]:
    try:
        exceptions: Any = import_module("botocore.exceptions")  # it has no types
    except ImportError:
        return _NotInstalled
    found: type[Exception] = getattr(exceptions, name)
    return found


def boto3(extra: str) -> Any:
    """The library. Raises :class:`InvalidSetting` naming the extra where it is not installed."""
    try:
        return import_module("boto3")
    except ImportError as error:
        raise InvalidSetting(
            f"needs: pip install 'compaction-ledger[{extra}]' ({error})", place="originals"
        ) from error


ClientError = _botocore("ClientError")
_BotoCoreError = _botocore("BotoCoreError")
_NEVER_SENT = (_botocore("ParamValidationError"), _botocore("UnsupportedSignatureVersionError"))

_DENIED = {
    "403",
    "AccessDenied",
    "AccessDeniedException",
    "AllAccessDisabled",
    "KMSAccessDeniedException",
    "MethodNotAllowed",
}
_REFUSED_FOR_GOOD = {
    "BadDigest",
    "EntityTooLarge",
    "InvalidArgument",
    "InvalidRequest",
    "ItemCollectionSizeLimitExceededException",
    "KeyTooLongError",
    "NotImplemented",
    "ValidationException",
}


def code_of(error: Exception) -> str:
    """The code of an answer that is an error, such as ``NoSuchKey``; empty for anything else."""
    response: Any = getattr(error, "response", None)
    return str(response["Error"].get("Code", "")) if isinstance(error, ClientError) else ""


@contextmanager
def translated(name: str, *, writing: bool = False) -> Generator[None]:
    """Around a call: what botocore raises comes out as a kind of :class:`StoreError`.

    :class:`StoreUnavailable` says of a writing call that it is not known whether it was carried out (A9).
    """
    try:
        yield
    except ClientError as error:
        raise _said(name, error, writing=writing) from error
    except _NEVER_SENT as error:
        raise StoreError(f"{name}: {error}") from error
    except _BotoCoreError as error:
        raise StoreUnavailable(f"{name} cannot be reached: {_words(error)}") from error


def _said(name: str, error: Exception, *, writing: bool) -> StoreError:
    code, words = code_of(error), _words(error)
    if code in _DENIED and writing:
        return LedgerReadOnly(f"{name} does not allow it: {words}")
    if code in _REFUSED_FOR_GOOD:
        return StoreError(f"{name}: {words}")
    # Asked too often, out of order, no bucket or table of this name, or credentials that do not hold.
    return StoreUnavailable(f"{name} cannot be used: {words}")


def _words(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
