"""`MODULE:NAME` of a command line: what it finds, and how mistakes are told."""

import sys

import pytest

from raxol_mcp import ConfigurationError, Server
from raxol_mcp.cli.loading import blame, load_authorizer, load_server, one_line
from tests.cli.conftest import WriteModule

SERVER = "from raxol_mcp import Server\nserver = Server('found')\n"


def failure(target: str) -> str:
    """Load what cannot be loaded; return the sentence."""
    with pytest.raises(ConfigurationError) as caught:
        load_server(target)
    return str(caught.value)


# -- what is found ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", ["found_a:server", "found_a", "found_a.py:server", "found_a.py", "./found_a.py"]
)
def test_a_module_is_named_by_its_name_or_its_path(write_module: WriteModule, target: str) -> None:
    write_module("found_a", SERVER)
    assert load_server(target).name == "found"


def test_a_module_in_a_package_is_dotted(write_module: WriteModule) -> None:
    write_module("package_b/__init__", "")
    write_module("package_b/inner", SERVER)
    assert load_server("package_b.inner").name == "found"


def test_a_server_may_be_an_attribute_of_something(write_module: WriteModule) -> None:
    write_module("holder_c", SERVER + "class Holder:\n    inside = server\n")
    assert load_server("holder_c:Holder.inside").name == "found"


def test_a_function_that_returns_a_server_is_called(write_module: WriteModule) -> None:
    write_module("made_d", "from raxol_mcp import Server\ndef make():\n    return Server('made')\n")
    assert load_server("made_d:make").name == "made"


def test_a_file_finds_its_neighbours_from_anywhere(write_module: WriteModule) -> None:
    write_module("folder/neighbour_e", "NAME = 'neighbour'\n")
    text = "from raxol_mcp import Server\nimport neighbour_e\nserver = Server(neighbour_e.NAME)\n"
    path = write_module("folder/main_e", text)
    assert load_server(str(path)).name == "neighbour"


def test_a_file_is_imported_under_its_own_name(write_module: WriteModule) -> None:
    """A worker process imports it again by that."""
    write_module("named_f", SERVER)
    load_server("named_f.py")
    assert "named_f" in sys.modules


# -- what is not there ------------------------------------------------------------------------


def test_a_missing_module_is_named(write_module: WriteModule) -> None:
    write_module("package_g/__init__", "")
    assert failure("nothing_g:server").startswith("there is no module 'nothing_g' in ")
    assert failure("package_g.nothing").startswith("there is no module 'package_g.nothing' in ")


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        (":server", "write MODULE:NAME, not ':server'"),
        ("module:", "write MODULE:NAME, not 'module:'"),
        ("my-server", "'my-server' is neither a dotted module nor the path of a .py file"),
        (".relative", "'.relative' is neither a dotted module nor the path of a .py file"),
        ("gone.py", "there is no Python file 'gone.py': check the path"),
        ("folder/gone", "there is no Python file 'folder/gone': check the path"),
    ],
)
def test_what_cannot_be_a_module_is_told(
    write_module: WriteModule, target: str, sentence: str
) -> None:
    assert failure(target) == sentence


def test_a_missing_server_is_told_with_the_one_that_is_there(write_module: WriteModule) -> None:
    write_module("other_h", SERVER.replace("server =", "app ="))
    assert failure("other_h") == "other_h has no 'server'; its server is other_h:app"
    write_module("empty_h", "")
    assert failure("empty_h") == "empty_h has no 'server': name what it has, as MODULE:NAME"


def test_what_is_no_server_is_told(write_module: WriteModule) -> None:
    write_module("wrong_i", "server = 5\nasync def later(): ...\ndef none(): ...\n")
    assert failure("wrong_i") == "wrong_i:server is a int, not a raxol_mcp.Server"
    assert failure("wrong_i:none") == "wrong_i:none is a NoneType, not a raxol_mcp.Server"
    sentence = "wrong_i:later is async: name a server, or a plain function of it"
    assert failure("wrong_i:later") == sentence


def test_a_file_with_the_name_of_another_module_is_refused(write_module: WriteModule) -> None:
    write_module("json", SERVER)
    assert failure("json.py").startswith("'json.py' has the name of another module (")
    write_module("dotted.name", SERVER)
    assert failure("dotted.name.py").startswith("'dotted.name.py' cannot be imported: rename it")


# -- mistakes inside --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "def f():\n    return undefined\nserver = f()\n",
            "NameError: name 'undefined' is not defined (wrong.py:2)",
        ),
        ("def f(:\n", "SyntaxError: invalid syntax (wrong.py:1)"),
        ("\nimport not_there\n", "ModuleNotFoundError: No module named 'not_there' (wrong.py:2)"),
        ("raise ValueError('two\\n  lines')\n", "ValueError: two lines (wrong.py:1)"),
        ("raise ValueError\n", "ValueError (wrong.py:1)"),
        ("import json\njson.loads('{')\n", "(wrong.py:2)"),
        ("import sys\nsys.exit('set FOLDER')\n", "SystemExit: set FOLDER (wrong.py:2)"),
        ("raise GeneratorExit\n", "GeneratorExit (wrong.py:1)"),
        ("raise BaseException('odd')\n", "BaseException: odd (wrong.py:1)"),
        ("import sys\nsys.exit(3)\n", 'guard that with if __name__ == "__main__"'),
        (
            "from raxol_mcp import Server\nserver = Server()\n@server.tool\ndef f(): ...\n",
            "tool 'f' has no description: write a docstring or pass description= (wrong.py:3)",
        ),
    ],
)
def test_a_mistake_is_told_as_the_users(write_module: WriteModule, text: str, told: str) -> None:
    write_module("wrong", text)
    sentence = failure("wrong.py")
    assert sentence.startswith("wrong.py cannot be imported: ")
    assert sentence.endswith(told)


def test_a_mistake_in_a_function_is_told(write_module: WriteModule) -> None:
    write_module("fails_j", "def make():\n    raise OSError('no disk')\n")
    assert failure("fails_j:make") == "fails_j:make() failed: OSError: no disk (fails_j.py:2)"
    write_module("odd_j", "def make():\n    raise GeneratorExit\n")
    assert failure("odd_j:make") == "odd_j:make() failed: GeneratorExit (odd_j.py:2)"
    write_module("takes_j", "def make(config): ...\n")
    assert failure("takes_j:make").startswith("takes_j:make() failed: TypeError: make() missing")


def test_ctrl_c_is_no_mistake(write_module: WriteModule) -> None:
    write_module("interrupted_k", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load_server("interrupted_k")
    write_module("called_k", "def make():\n    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load_server("called_k:make")


def test_an_error_without_a_line_of_the_users_is_ours() -> None:
    assert blame(ValueError("no traceback")) is None


def test_a_long_message_is_cut() -> None:
    assert len(one_line(ValueError("x" * 10_000))) < 600


# -- authorizers ------------------------------------------------------------------------------


def test_an_authorizer_is_found(write_module: WriteModule) -> None:
    write_module("policy_l", "from raxol_mcp import deny\ndef decide(n, a, c): return deny()\n")
    authorizer = load_authorizer("policy_l:decide")
    assert Server(authorizer=authorizer).authorizer is authorizer


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("policy_m", "write the authorizer as MODULE:NAME, not 'policy_m'"),
        ("policy_m:LIST", "policy_m:LIST is a list, not an authorizer"),
        ("raxol_mcp:deny_all", "must take (name, arguments, context)"),
    ],
)
def test_what_is_no_authorizer_is_told(
    write_module: WriteModule, target: str, sentence: str
) -> None:
    """Put in as it is, it would deny every call later, and nobody would know why."""
    write_module("policy_m", "LIST = []\n")
    with pytest.raises(ConfigurationError) as caught:
        load_authorizer(target)
    assert str(caught.value).endswith(sentence)


def test_an_authorizer_without_a_signature_is_taken(write_module: WriteModule) -> None:
    write_module("policy_n", "decide = getattr\n")
    assert callable(load_authorizer("policy_n:decide"))
