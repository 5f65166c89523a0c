"""Small libraries with the names that rlplay uses of the real ones, for machines that do not have these."""

from __future__ import annotations

import random
from enum import Enum, auto
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar


def module(name: str, **content: Any) -> ModuleType:
    """A module with this content."""
    found = ModuleType(name)
    vars(found).update(content)
    return found


def reasoning_gym() -> dict[str, ModuleType]:
    """One generator: sums, of which the second is asked twice. A score fails on what is no number."""

    class Sums:
        def __init__(self, size: int, seed: int, most: int = 9) -> None:
            self.seed, self.most, self.size = seed, most, size

        def __getitem__(self, number: int) -> dict[str, Any]:
            drawn = random.Random(self.seed + max(1, number))
            a, b = drawn.randint(1, self.most), drawn.randint(1, self.most)
            return {"question": f"{a}+{b}={(number > 1 and number) or ''}", "answer": str(a + b), "metadata": {"a": a}}

        def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
            assert entry["metadata"]["a"]
            return float(int(answer or "") == int(entry["answer"]))

    def extract_answer(text: str) -> str | None:
        return text.partition("<answer>")[2].partition("</answer>")[0] or None

    def create_dataset(name: str, **options: Any) -> Sums:
        assert name == "sums"
        return Sums(**options)

    return {
        "reasoning_gym": module("reasoning_gym", create_dataset=create_dataset),
        "reasoning_gym.factory": module("reasoning_gym.factory", DATASETS={"sums": ()}),
        "reasoning_gym.utils": module("reasoning_gym.utils", extract_answer=extract_answer),
    }


class Kind(Enum):
    """TextArena's kinds of messages, those that matter."""

    PROMPT = auto()
    PLAYER_ACTION = auto()
    GAME_MESSAGE = auto()


class Wrapper:
    """TextArena's: another game around a game."""

    def __init__(self, env: Any) -> None:
        self.env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)


class Brackets(Wrapper):
    """A wrapper of actions."""

    def step(self, action: str) -> Any:
        return self.env.step(action=f"[{action}]")


class Dice:
    """Guess the next throw of a die that Python's global random numbers decide; three throws."""

    def __init__(self, sides: int = 6) -> None:
        self.sides, self.said, self.right, self.throws = sides, list[Any](), 0, 0

    def reset(self, num_players: int, seed: int) -> None:
        assert num_players == 1, "one player"
        random.seed(seed)
        self.right = self.throws = 0
        self.said = [(-1, f"A die with {self.sides} sides, {random.randint(0, 99)}.", Kind.PROMPT)]

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        thrown = random.randint(1, self.sides)
        self.throws += 1
        self.right += action == f"[{thrown}]"
        self.said += [(0, action, Kind.PLAYER_ACTION), (-1, f"It was {thrown}.", Kind.GAME_MESSAGE)]
        return self.throws == 3, {}

    def get_observation(self) -> tuple[int, list[Any]]:
        said, self.said = self.said, []
        return 0, said

    def close(self) -> tuple[dict[int, float] | None, dict[str, Any]]:
        return ({0: self.right / 3} if self.throws == 3 else None), {}


class Pair:
    """A game for two: they add to a sum; who makes it 10 wins."""

    def reset(self, num_players: int, seed: int) -> None:
        assert num_players == 2, "The number of players has to be 2, received 1"
        self.player, self.total = 0, seed
        self.said: list[list[Any]] = [[(-1, f"You are {n}. {seed}.", Kind.PROMPT)] for n in range(2)]

    def step(self, action: str) -> tuple[bool, dict[str, Any]]:
        for said in self.said:
            said.append((self.player, action, Kind.PLAYER_ACTION))
        self.total += int(action.strip("[]"))
        self.last, self.player = self.player, 1 - self.player
        return self.total >= 10, {}

    def get_observation(self) -> tuple[int, list[Any]]:
        said, self.said[self.player] = self.said[self.player], []
        return self.player, said

    def close(self) -> tuple[dict[int, float], dict[str, Any]]:
        return {self.last: 1.0, 1 - self.last: -1.0}, {}


def textarena() -> dict[str, ModuleType]:
    """Two games, one of them for two players."""
    games = {"Dice-v0": Dice, "Pair-v0": Pair}
    registration = module("textarena.envs.registration", ENV_REGISTRY=games)
    return {
        "textarena": module(
            "textarena",
            make=lambda name, **options: Brackets(games[name](**options)),
            Wrapper=Wrapper,
            ObservationType=Kind,
        ),
        "textarena.envs": module("textarena.envs", registration=registration),
        "textarena.envs.registration": registration,
    }


class Client:
    """OpenEnv's generic client, and behind it an environment that echoes; a word of the seed's letter earns 1."""

    opened: ClassVar[list[str]] = []

    def __init__(self, base_url: str) -> None:
        self.base_url, self.turns, self.letter = base_url, 0, ""

    def sync(self) -> Client:
        return self

    def connect(self) -> None:
        self.opened.append(self.base_url)

    def close(self) -> None:
        self.opened.remove(self.base_url)

    def reset(self, seed: int, **options: Any) -> Any:
        self.turns, self.letter = 0, options.get("letters", "abc")[seed % 3]
        return SimpleNamespace(observation={"text": f"A word with {self.letter}?", "turns": 0}, reward=None, done=False)

    def step(self, action: dict[str, Any]) -> Any:
        self.turns += 1
        seen = {"text": f"{action['word']}!", "turns": self.turns, "metadata": {}}
        reward = float(self.letter in action["word"]) if self.turns < 3 else None
        return SimpleNamespace(observation=seen, reward=reward, done=self.turns == 3)


class SingleTurnEnv:
    """An environment of verifiers before 0.4: a dataset, and a rubric that logs its parts."""

    judged = False

    def __init__(self, most: int = 3) -> None:
        self.rows = [
            {"prompt": [{"role": "system", "content": "Add."}, {"role": "user", "content": f"{n}+1?"}], "answer": n + 1}
            for n in range(most)
        ]
        self.rubric: Any = JudgeRubric() if self.judged else self

    def get_dataset(self, n: int, seed: int | None) -> Any:
        rows = self.rows[:n] if seed is None else random.Random(seed).sample(self.rows, len(self.rows))[:n]
        return SimpleNamespace(to_list=lambda: rows)

    async def score_rollout(self, state: dict[str, Any]) -> None:
        right = float(state["completion"][-1]["content"] == str(state["answer"]))
        state["metrics"] = {"right": right, "turns": float(len(state["trajectory"]))}
        state["reward"] = 2 * right


class JudgeRubric:
    """One that asks a model."""


class State(dict[str, Any]):
    """An answered row."""


def verifiers_before() -> dict[str, ModuleType]:
    """A library with an environment's package, which makes another kind of environment for more than 100 rows."""
    made = {"SingleTurnEnv": SingleTurnEnv, "JudgeRubric": JudgeRubric, "State": State}

    def load_environment(name: str, **options: Any) -> Any:
        assert name == "me/my-adder"
        return SimpleNamespace() if options.get("most", 0) > 100 else SingleTurnEnv(**options)

    return {
        "verifiers": module("verifiers", load_environment=load_environment, **made),
        "my_adder": module("my_adder", load_environment=None),
    }


def openenv() -> dict[str, ModuleType]:
    """A client that is its own server."""
    generic = module("openenv.core.generic_client", GenericEnvClient=Client)
    core = module("openenv.core", generic_client=generic)
    return {"openenv": module("openenv", core=core), "openenv.core": core, "openenv.core.generic_client": generic}
