"""What `rlplay teachers --json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlplay.api.teachers import Teachers
from rlplay.printed import Asked, EarlierUpdates, TaughtBy, TaughtInUpdates, TeachersCourse, Without, number_or_null
from rlplay.printed import Teachers as Printed
from rlplay.trace.answers import advantages
from rlplay.trace.records import Evaluated
from rlplay.trace.teachers import TakenAway, Target, TaughtCourse
from rlplay.trace.update import Update


def asked_about(update: Update, answer: int, token: int | None, target: Target, candidate: bool) -> Asked:
    """What the target is, in words of the record."""
    sampled = update.sampled
    assert sampled is not None
    start, end = sampled.offsets[answer : answer + 2].tolist()
    chosen = target.answer_ids[-1] if candidate else None
    if token is None:
        text = "".join(sampled.texts[start:end])
    elif chosen is None:
        text = sampled.texts[start + token] or sampled.pieces.get(int(sampled.token_ids[start + token]), "")
    else:
        text = sampled.pieces.get(chosen, f"#{chosen}")
    prompt = sampled.prompts[int(sampled.group[answer])]
    return Asked(held_out=None, answer=answer, token=token, candidate=chosen, text=text, prompt=prompt)


def asked_about_held_out(held_out: Evaluated, answer: int) -> Asked:
    """What the target is, if it is a held-out answer."""
    text, prompt = held_out.completions[answer], held_out.prompts[answer]
    return Asked(held_out=held_out.update, answer=answer, token=None, candidate=None, text=text, prompt=prompt)


def teachers_object(
    run: Path, found: Teachers, asked: Asked, sentence: str, without: Sequence[int], taken: TakenAway | None
) -> Printed:
    """What was found, in a `sentence` too; and what was `taken` without the answers `without`."""
    answers = [
        _taught_by(found, group.nearness, teacher.completion, teacher.token)
        for group in found.groups
        for teacher in group.teachers
        if teacher.completion is not None and teacher.token is not None
    ]
    away = None
    if taken is not None:
        away = Without(answers=sorted(set(without)), after=taken.without, moved=taken.without - taken.before)
    return Printed(
        run=str(run),
        update=found.update,
        by=found.by,
        target=asked,
        before=found.before,
        after=found.after,
        measured=found.measured,
        predicted=found.predicted,
        batch=found.batch,
        earlier=found.earlier,
        rest=found.rest,
        first_order=found.taught.first_order,
        sentence=sentence,
        answers=answers,
        earlier_updates=[EarlierUpdates(since=a, update=b, sum=total) for a, b, total in found.taught.earlier_by],
        without=away,
    )


def _taught_by(found: Teachers, nearness: str, completion: int, token: int) -> TaughtBy:
    sampled = found.of.sampled
    assert sampled is not None
    own = slice(*sampled.offsets[completion : completion + 2].tolist())
    texts, mean = sampled.texts[own], advantages(found.of)
    return TaughtBy(
        answer=completion,
        nearness=nearness,
        advantage=None if mean is None else number_or_null(mean[completion]),
        sum=float(found.by_answer[completion]),
        token=token - own.start,
        prompt=sampled.prompts[int(sampled.group[completion])],
        text="".join(texts),
        tokens=texts,
        shares=found.shares[own].tolist(),
    )


def course_object(run: Path, course: TaughtCourse, asked: Asked) -> TeachersCourse:
    """How far each update moved the target."""
    moves = [
        TaughtInUpdates(
            since=move.since,
            update=move.update,
            after=move.after,
            measured=move.measured,
            predicted=move.batch + move.earlier + move.rest,
            batch=move.batch,
            earlier=move.earlier,
            rest=move.rest,
        )
        for move in course.moves
    ]
    return TeachersCourse(run=str(run), target=asked, moves=moves)
