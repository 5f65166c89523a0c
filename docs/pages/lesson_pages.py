"""A page for each lesson: what is said, asked, done and claimed, with what its claims measured on ten seeds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from rlplay.exercises import exercise_called
from rlplay.scenario.claim import Expect
from rlplay.scenario.course import Chapter, chapters
from rlplay.scenario.loader import load
from rlplay.scenario.script import Ask, Change, Exercise, Say, Train, Watch, Write, You, parse


class LessonPages(NamedTuple):
    """The navigation of the chapters, and the text of each page by its path."""

    navigation: list[dict[str, Any]]
    texts: dict[str, str]


@lru_cache(maxsize=1)
def lesson_pages() -> LessonPages:
    """The pages of the course, chapter by chapter."""
    navigation: list[dict[str, Any]] = []
    texts = {}
    for chapter in chapters():
        pages = []
        for name in chapter.lessons:
            path = f"lessons/{name}.md"
            texts[path] = "\n\n".join(_page(name, chapter))
            pages.append({load(name).title: path})
        navigation.append({chapter.title: pages})
    return LessonPages(navigation, texts)


def _page(name: str, chapter: Chapter) -> Iterator[str]:
    lesson = load(name)
    yield f"# {lesson.title}"
    yield f"**{lesson.question}**"
    if lesson.summary:
        yield lesson.summary
    yield f"Chapter: {chapter.title}. Play it: `rlplay {name}`. Check its claims without a screen: `rlplay run {name}`."
    yield "## What happens"
    for step in parse(lesson.script):
        yield from _step(step)


def _step(step: Any) -> Iterator[str]:
    match step:
        case Say():
            yield step.text
        case Ask():
            choices = "\n".join(f"- {choice}" for choice in step.choices)
            yield f"**{step.question}**\n\n{choices}"
            yield _closed("Answer", f"{step.choices[step.answer]}. {step.because}")
        case Train(until="update"):
            yield f"*{step.count} {'update' if step.count == 1 else 'updates'}*"
        case Change():
            yield f"*{', '.join(f'`{setting} = {value}`' for setting, value in step.settings.items())}*"
        case Expect():
            yield f"✓ {step.text}"
        case Watch():
            yield f"*Until: {step.claim.text}*"
        case You():
            yield f"**You:** {step.text}"
        case Exercise():
            yield f"**Exercise:** {step.text}"
            yield _closed("Hint", step.hint) if step.hint else ""
        case Write():
            yield f"**Write it:** {step.text}"
            yield _closed("Solution", f"```python\n{exercise_called(step.exercise).solution}\n```")


def _closed(title: str, text: str) -> str:
    body = "\n".join(f"    {line}" if line else "" for line in text.splitlines())
    return f'??? note "{title}"\n\n{body}'
