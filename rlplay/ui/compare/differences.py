"""What two runs that are compared differ in, as lines of the screen."""

from __future__ import annotations

from textual.content import Content

from rlplay.ui.compare.two_runs import RunPair


def differing_line(pair: RunPair, width: int) -> Content:
    """The third line: the update that is compared, and how the second run differs there."""
    line = _difference(pair)
    return Content(line if len(line) <= width - 2 else f"{line[: width - 3]}…")


def _difference(pair: RunPair) -> str:
    its = pair.letters[1]
    if pair.starting:
        return f"{pair.starting} is starting…"
    there, set_now = (" · ".join(pair.differences(now)) for now in (False, True))
    if there:
        return f"at {pair.where}, {its} differs in: {there}"
    later = f"; {its} changes later: {set_now}" if set_now else ""
    for letter, session in zip(pair.letters, pair.both, strict=True):
        if pair.reached(session) < pair.number:
            return f"{letter} has reached only update {session.run.finished}, not {pair.number}{later}"
    if pair.identical:
        return f"at {pair.where} both have equal settings, answers and numbers{later}"
    if not any(session.on_record().keys() - {"algorithm"} for session in pair.both):
        return "the settings of the runs are not on record"
    before = f"; {', '.join(pair.earlier)} differed before" if pair.earlier else ""
    files = "; contents of data and reward files are not compared" if pair.names_files else ""
    return f"at {pair.where} the settings are the same{before}{files}{later}"


def compared_words(parted: int | None, token: int) -> str:
    """Whether two tokens stand after the same words; `parted` is the first that differs, -1 if the prompts do."""
    if parted == -1:
        return "not the same prompt"
    if parted is None or token <= parted:
        return "same prefix, so comparable"
    return f"different words before it, from token {parted + 1} on"
