"""Messages of what callers give. What cannot be in one is refused here, with a sentence: protobuf's
own words name neither the argument nor what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, TypeVar, Union

from .exceptions import InvalidConfigurationError

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    Fields = ParamSpec("Fields")

Made = TypeVar("Made")

LONGEST_NAME = 4096
"""Characters of a path or a name; no file system has longer ones."""

_TEXTS = {"command", "pattern", "text"}
"""Fields that may be as long as they like."""


def message(
    kind: Callable[Fields, Made], *args: Fields.args, **fields: Fields.kwargs
) -> Made:
    """`kind(field=value, …)`, or an `InvalidConfigurationError` about the field that is wrong."""
    for name, value in fields.items():
        if isinstance(value, str) and len(value) > LONGEST_NAME and name not in _TEXTS:
            raise InvalidConfigurationError(
                f"the {_spoken(name)} cannot be {_shown(value)}: it has {len(value):,} characters "
                f"and may have {LONGEST_NAME:,}")
    try:
        return kind(*args, **fields)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidConfigurationError(_complaint(kind, fields, error)) from None


def encoded(text: Optional[Union[str, bytes]], what: str) -> bytes:
    """The bytes that are meant."""
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise InvalidConfigurationError(f"the {what} is no text that can be sent") from None
    if text is not None and not isinstance(text, (bytes, bytearray, memoryview)):
        raise InvalidConfigurationError(f"the {what} is text or bytes, not {_shown(text)}")
    return bytes(text or b"")


def starting(value: Any) -> Dict[str, Any]:
    """The field `from`, which is a word of the language."""
    return {"from": value}


def _complaint(kind: Any, fields: Mapping[str, Any], error: Exception) -> str:
    for name, value in fields.items():
        try:
            kind(**{name: value})
        except UnicodeEncodeError:
            return f"the {_spoken(name)} cannot be {_shown(value)}: that is no text"
        except (TypeError, ValueError, AttributeError):
            return f"the {_spoken(name)} cannot be {_shown(value)}"
    return str(error)


_SPOKEN = {"from": "place to start from", "mask": "list of ignore patterns"}
"""Fields that are not called what the arguments are."""


def _spoken(name: str) -> str:
    return _SPOKEN.get(name) or name.replace("_", " ")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"
