"""A few of the planted bugs, and that the list of all fits; `make mutants` judges every one."""

from __future__ import annotations

import pytest

from tests.core.mutants import MUTANTS, PACKAGE, Mutant, judge, patched

FEW = (
    "the slot of a late report is never given back",
    "an answer is taken from any connection",
    "an approval does not look at its share",
    "a token can be used again",
    "a settled call keeps its slot",
    "the answers of one session reach the next",
    "progress gives time without end",
)


def source_of(mutant: Mutant) -> str:
    return (PACKAGE / "core" / f"{mutant.module}.py").read_text("utf-8")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_fits_the_source_and_changes_it(mutant: Mutant) -> None:
    assert patched(mutant, source_of(mutant)) != source_of(mutant)


def test_no_two_mutants_are_the_same() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.module, mutant.changes) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("old", ["call.no_such_member", "call"])
def test_a_text_that_is_not_there_exactly_once_is_an_error(old: str) -> None:
    mutant = Mutant("it has rotted", "ledger", ((old, "pass"),))
    with pytest.raises(ValueError, match="it has rotted"):
        patched(mutant, source_of(mutant))


@pytest.mark.parametrize(
    "mutant", [one for one in MUTANTS if one.name in FEW], ids=lambda mutant: mutant.name
)
def test_the_walk_finds_a_planted_bug(mutant: Mutant) -> None:
    verdict = judge(mutant, steps=10_000)
    assert verdict.killer is not None
    assert verdict.killer.startswith("the walk, step ")


def test_a_mutant_that_does_not_start_is_an_error_and_not_a_find() -> None:
    mutant = Mutant("broken", "server", (("class ServerCore:", "class ServerCore(nothing):"),))
    with pytest.raises(ValueError, match="the walk did not run"):
        judge(mutant, steps=10)
