"""Glossary entries as text for the help of a panel."""

from __future__ import annotations

from rlplay.glossary import term_called


def explained(*names: str) -> str:
    """The entries of these terms as Markdown, each with its formulas."""
    return "\n\n".join(map(_entry, names))


def _entry(name: str) -> str:
    term = term_called(name)
    formulas = [f"* {line}" for line in term.formula.split("\n") if line]
    return "\n".join([f"**{term.name}**: {term.text}", *([""] if formulas else []), *formulas])
