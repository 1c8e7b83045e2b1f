"""What `MODULE:NAME` on a command line names: imports it, or says in one sentence why not.

MODULE is a dotted module or the path of a `.py` file. Whatever goes wrong in the user's code is
told as the user's: the type, the message and the line of their file, without a frame of ours.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Callable
from types import ModuleType, TracebackType

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.app import Server
from raxol_mcp.server.authorizer import Authorizer

__all__ = ["blame", "load_authorizer", "load_named", "load_server", "one_line"]

_logger = logging.getLogger("raxol_mcp.cli")

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))
_MAX_TEXT = 500


def load_server(target: str) -> Server:
    """Import the server that `MODULE[:SERVER]` names; SERVER is `server` when it is left out.

    A function is called, without arguments, and must return the server. Raises
    ConfigurationError.
    """
    module, name = _parts(target, "server")
    value = _attribute(module, name)
    label = f"{target}" if ":" in target else f"{target}:{name}"
    if not isinstance(value, Server) and callable(value):
        value = _called(value, label)
    if isinstance(value, Server):
        return value
    if hasattr(value, "__await__"):
        raise ConfigurationError(f"{label} is async: name a server, or a plain function of it")
    raise ConfigurationError(f"{label} is a {type(value).__name__}, not a raxol_mcp.Server")


def load_authorizer(target: str) -> Authorizer:
    """Import the authorizer that `MODULE:NAME` names. Raises ConfigurationError."""
    if ":" not in target:
        raise ConfigurationError(f"write the authorizer as MODULE:NAME, not {target!r}")
    module, name = _parts(target, "")
    value = _attribute(module, name)
    if not callable(value):
        raise ConfigurationError(f"{target} is a {type(value).__name__}, not an authorizer")
    _check_takes_a_call(value, target)
    authorizer: Authorizer = value
    return authorizer


def load_named(target: str) -> tuple[ModuleType, object]:
    """Import what `MODULE[:NAME]` names, and its module: the module itself without a NAME.

    Raises ConfigurationError.
    """
    if ":" not in target:
        module, _ = _parts(target, "-")
        return module, module
    module, name = _parts(target, "")
    return module, _attribute(module, name)


def blame(error: BaseException) -> str | None:
    """Tell an error in the user's code in one line: type, message, place.

    None when no line of the user's had a part in it: then the fault is ours.
    """
    place = _place(error)
    if place is None:
        return None
    file, line = place
    return f"{one_line(error)} ({_shown(file)}:{line})"


def one_line(error: BaseException) -> str:
    """Write `Type: message` in one line, however long or many-lined the message is.

    A ConfigurationError is a sentence already and needs no type.
    """
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    text = " ".join(message.split())[:_MAX_TEXT]
    if isinstance(error, ConfigurationError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# -- importing --------------------------------------------------------------------------------


def _parts(target: str, default: str) -> tuple[ModuleType, str]:
    named, colon, name = target.rpartition(":")
    if not colon:
        named, name = target, default
    if not named or not name:
        raise ConfigurationError(f"write MODULE:NAME, not {target!r}")
    is_path = named.endswith(".py") or os.sep in named
    return (_from_path(named) if is_path else _from_name(named)), name


def _from_name(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ConfigurationError(f"{name!r} is neither a dotted module nor the path of a .py file")
    # As for `python -m`, and as little as there: a file here must be able to import its neighbour.
    if not sys.flags.safe_path:
        _put_on_path(os.getcwd())
    return _imported(name, name)


def _from_path(path: str) -> ModuleType:
    file = os.path.abspath(path)
    folder, base = os.path.split(file)
    name, extension = os.path.splitext(base)
    if extension != ".py" or not os.path.isfile(file):
        raise ConfigurationError(f"there is no Python file {path!r}: check the path")
    if "." in name:
        raise ConfigurationError(f"{path!r} cannot be imported: rename it without the extra dot")
    # Under its own name and not a made-up one: worker processes import it again by that.
    _put_on_path(folder)
    module = _imported(name, path)
    found = getattr(module, "__file__", None)
    if not found or not os.path.exists(found) or not os.path.samefile(found, file):
        raise ConfigurationError(
            f"{path!r} has the name of another module ({found or 'built in'}): rename the file"
        )
    return module


def _put_on_path(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _imported(name: str, label: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if _place(error) is None and f"{name}.".startswith(f"{missing}."):
            raise ConfigurationError(
                f"there is no module {missing!r} in {os.getcwd()} or on Python's path: "
                "check the spelling, or give the path of a .py file"
            ) from None
        raise _mistake(f"{label} cannot be imported", error) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever it is, SystemExit as well: the user's code ended
        raise _mistake(f"{label} cannot be imported", error) from error


def _attribute(module: ModuleType, name: str) -> object:
    value: object = module
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise ConfigurationError(
                f"{module.__name__} has no {name!r}{_suggestion(module)}"
            ) from None
    return value


def _suggestion(module: ModuleType) -> str:
    servers = [name for name, value in vars(module).items() if isinstance(value, Server)]
    if servers:
        found = " or ".join(f"{module.__name__}:{name}" for name in servers)
        return f"; its server is {found}"
    return ": name what it has, as MODULE:NAME"


def _called(function: Callable[[], object], label: str) -> object:
    try:
        value = function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # as above
        raise _mistake(f"{label}() failed", error) from error
    close = getattr(value, "close", None)
    if hasattr(value, "__await__") and callable(close):
        close()  # a coroutine that is not awaited must not complain about that
    return value


def _check_takes_a_call(function: Callable[..., object], label: str) -> None:
    """Refuse now what would deny every call later, such as the name of an authorizer's maker."""
    import inspect

    try:
        inspect.signature(function).bind("tool", {}, {})
    except TypeError:
        raise ConfigurationError(
            f"{label} is no authorizer: it must take (name, arguments, context)"
        ) from None
    except ValueError:
        pass  # written in C, without a signature: it will show


# -- telling mistakes -------------------------------------------------------------------------


def _mistake(what: str, error: BaseException) -> ConfigurationError:
    """Make the one sentence of an error in the user's code."""
    _logger.debug("%s", what, exc_info=error)
    told = blame(error) or one_line(error)
    if isinstance(error, SystemExit) and not isinstance(error.code, str):
        told = f'it ends the process ({told}); guard that with if __name__ == "__main__"'
    return ConfigurationError(f"{what}: {told}")


def _place(error: BaseException) -> tuple[str, int] | None:
    """Find the innermost line of the user's that led to `error`; library code is nobody's."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return error.filename, error.lineno
    found = None
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not _is_library(file):
            found = file, traceback.tb_lineno
        traceback = traceback.tb_next
    return found


def _is_library(file: str) -> bool:
    if file.startswith("<"):
        return True
    if {"site-packages", "dist-packages"} & set(file.split(os.sep)):
        return True
    return file.startswith((_PACKAGE + os.sep, _LIBRARY + os.sep))


def _shown(file: str) -> str:
    here = os.getcwd() + os.sep
    return file.removeprefix(here)
