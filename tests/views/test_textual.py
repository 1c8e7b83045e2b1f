"""`textual_server`: a whole server of an app, with its sessions side by side and its lens."""

import asyncio
from typing import Any

import pytest

from raxol_mcp.errors import ConfigurationError
from raxol_mcp.server.authorizer import allow_all
from raxol_mcp.transports.memory import MemoryTransport
from raxol_mcp.views.focus import FocusLens
from raxol_mcp.views.textual import INSTRUCTIONS, app_class_of, launch_of, textual_server
from tests.views import textual_apps
from tests.views.textual_apps import Scenes, Texts


async def greeted(server: Any) -> MemoryTransport:
    client = MemoryTransport(server, through_bytes=True)
    client.open()
    hello: dict[str, object] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    told: Any = await client.request("initialize", hello)
    assert told["result"]["instructions"] == INSTRUCTIONS
    return client


async def call(client: MemoryTransport, name: str, **arguments: object) -> str:
    params: dict[str, object] = {"name": name, "arguments": arguments}
    answer: Any = await client.request("tools/call", params)
    return str(answer["result"]["content"][0]["text"])


async def tools(client: MemoryTransport) -> list[str]:
    answer: Any = await client.request("tools/list")
    return [tool["name"] for tool in answer["result"]["tools"]]


def test_sessions_run_side_by_side() -> None:
    async def scene() -> None:
        server = textual_server(Texts, authorizer=allow_all())
        async with server:
            clients = [await greeted(server) for _ in range(4)]
            started = await asyncio.gather(*[call(client, "start_session") for client in clients])
            names = [text.split()[1] for text in started]
            assert sorted(names) == ["s1", "s2", "s3", "s4"]
            for text in ("Ann", " and", " Bob"):
                typed = [
                    call(client, f"{name}.name.type_into", text=text)
                    for client, name in zip(clients, names, strict=True)
                ]
                assert await asyncio.gather(*typed) == ["typed"] * 4
            for client, name in zip(clients, names, strict=True):
                assert await call(client, f"{name}.name.get_value") == "Ann and Bob"
            other = f"{names[1]}.name.get_value"
            answer: Any = await clients[0].request("tools/call", {"name": other, "arguments": {}})
            assert answer["error"]["message"] == f"Tool not found: {other}"

    asyncio.run(scene())


def test_calls_of_one_session_come_one_after_the_other() -> None:
    async def scene() -> None:
        server = textual_server(Texts, authorizer=allow_all())
        async with server:
            client = await greeted(server)
            await call(client, "start_session")
            typed = [
                call(client, f"s1.{id}.type_into", text=text)
                for id, text in (("name", "one"), ("full", "two"), ("name", "three"))
            ]
            assert await asyncio.gather(*typed) == ["typed"] * 3
            assert await call(client, "s1.name.get_value") == "onethree"
            assert await call(client, "s1.full.get_value") == "beforetwo"

    asyncio.run(scene())


def test_a_list_of_changed_tools_is_told_of() -> None:
    async def scene() -> None:
        server = textual_server(Scenes, authorizer=allow_all())
        async with server:
            client = await greeted(server)
            await call(client, "start_session")
            client.unread()
            await call(client, "s1.hide.click")
            await asyncio.sleep(0)
            methods = [message["method"] for message in client.unread()]
            assert methods.count("notifications/tools/list_changed") == 1
            assert "s1.hide.click" not in await tools(client)

    asyncio.run(scene())


def test_the_lens_is_that_of_the_server_until_a_connection_sets_its_own() -> None:
    async def scene() -> None:
        server = textual_server(
            Texts, authorizer=allow_all(), lens=FocusLens(mode="focused", max_tools=40)
        )
        async with server:
            client = await greeted(server)
            await call(client, "start_session")
            await call(client, "s1.name.type_into", text="Ann")
            listed = await tools(client)
            assert "s1.name.clear" in listed
            assert "start_session" in listed
            assert "s1.notes.clear" not in listed
            assert await call(client, "s1.notes.clear") == "emptied"
            said = await call(client, "narrow_tools", mode="all", max_tools=100)
            assert said == "tools/list shows you all, at most 100"
            assert "s1.name.clear" in await tools(client)
            assert await call(client, "narrow_tools", mode="all", max_tools=0) == (
                "max_tools is from 1 to 4096"
            )

    asyncio.run(scene())


def test_the_values_of_the_app_are_resources() -> None:
    async def scene() -> None:
        server = textual_server(Scenes, authorizer=allow_all(), question=None)
        async with server:
            client = await greeted(server)
            await call(client, "start_session")
            await call(client, "s1.keys.erase_everything")
            uri: dict[str, object] = {"uri": "raxol://session/s1/model/mood"}
            answer: Any = await client.request("resources/read", uri)
            assert answer["result"]["contents"][0]["text"] == '"erased"'

    asyncio.run(scene())


def test_a_password_is_in_no_resource() -> None:
    async def scene() -> None:
        server = textual_server(Texts, authorizer=allow_all())
        async with server:
            client = await greeted(server)
            await call(client, "start_session")
            await call(client, "s1.secret.type_into", text="hunter2!")
            for part in ("widgets", "context"):
                uri: dict[str, object] = {"uri": f"raxol://session/s1/{part}"}
                answer: Any = await client.request("resources/read", uri)
                assert "secret" in answer["result"]["contents"][0]["text"]
                assert "hunter2" not in str(answer)

    asyncio.run(scene())


def test_what_is_no_app_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="an app can run once"):
        launch_of(Scenes())  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ConfigurationError, match="a Textual app was expected"):
        launch_of(dict)  # type: ignore[arg-type]  # as above
    with pytest.raises(ConfigurationError, match="declares not one Textual app but: "):
        app_class_of(textual_apps)
