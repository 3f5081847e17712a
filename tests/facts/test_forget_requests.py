"""Requests to forget, in the user's own words, and what only looks like one."""

from __future__ import annotations

import pytest

from wellkept.facts.rules_forget import find_forget_request


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("Forget my old number.", "my old number"),
        ("Could you please forget what I told you about Jonas?", "jonas"),
        ("Delete everything I said about the divorce, please.", "the divorce"),
        ("Remove my shoe size from your memory.", "my shoe size"),
        ("Forget our landlord's name, it's outdated.", "our landlord's name"),
        ("Vergiss bitte, was ich über Jonas gesagt habe.", "jonas"),
        ("Oublie mon ancien numéro.", "mon ancien numéro"),
        ("Borra lo que te dije sobre mi jefe.", "mi jefe"),
    ],
)
def test_a_request_names_what_to_forget(text: str, about: str) -> None:
    assert find_forget_request(text) == about


@pytest.mark.parametrize(
    "text",
    [
        "Don't forget my appointment.",
        "Forget it, let's talk about the garden.",
        "I forgot my umbrella.",
        "Forget the cancellation, I stay.",
        "Forget my last message.",
        "Delete the second paragraph.",
        "Please delete my account.",
        "Tom said: forget my old address.",
        "Never forget my birthday!",
        "If I move, forget my address.",
        "Forget my address and you will not get a postcard.",
        "Vergiss nicht, meine Mutter anzurufen.",
        "N'oublie pas mon anniversaire.",
        "No olvides mi cita.",
        "What did I forget about my trip?",
    ],
)
def test_nothing_else_is_a_request(text: str) -> None:
    assert find_forget_request(text) == ""
