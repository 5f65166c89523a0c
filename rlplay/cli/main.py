"""The `rlplay` command. Everything heavy is imported by the command that needs it, so that help is instant."""

from __future__ import annotations

import io
import os
import sys
import traceback
from typing import Any

import click
from click.shell_completion import CompletionItem

from rlplay.cli import foreign, listing, look, play
from rlplay.cli import new_scenario as new
from rlplay.cli.health import health
from rlplay.cli.list_settings import settings
from rlplay.cli.remove import remove
from rlplay.cli.repair import repair
from rlplay.cli.teachers import teachers
from rlplay.cli.trusting import trust
from rlplay.cli.types import SCENARIO
from rlplay.printing import visible_output
from rlplay.trace.text import brief_path, brief_quotes, quote, visible
from rlplay.version import __version__

BAD_INPUT, BROKEN, INTERRUPTED = 2, 3, 130
_EXAMPLES = (
    ("rlplay", "Watch a small model learn, then take part."),
    ("rlplay replay outputs/my-run", "Watch a run of TRL with RlplayCallback()."),
    ("rlplay health outputs/my-run", "Say why that run does not learn."),
)
GROUPS = {
    "Play": ("run", "demo", "resume", "new", "serve"),
    "Recorded runs, yours and those of other trainers": (
        "replay", "health", "try", "teachers", "compare", "attach", "import", "export", "runs", "rm",
    ),
    "Look up": ("list", "show", "algorithms", "settings", "doctor", "trust"),
}  # fmt: skip
"""The commands as the help lists them."""
_SCENARIOS = (
    "Without arguments the playground opens on the scenario learn-to-think. SCENARIO is the name of a bundled scenario "
    "('rlplay list' shows them), a path to a YAML file, or a share code (rlp1-…) from the knobs panel."
)
LONGEST_MESSAGE = 1000


class CommandGroup(click.Group):
    """A group that opens the playground if the first word is a scenario or missing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = [*self.commands, "--help", "-h", "--version"]
        completing_the_first = ctx.resilient_parsing and not args
        if not completing_the_first and (not args or args[0] not in own):
            if args and not args[0].startswith("-") and not ctx.resilient_parsing:
                self._known(ctx, args[0])
            args = [play.play.name or "", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed pipe, as in `rlplay runs | head -1`, ends it like ctrl+c."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # Without this, Python reports the closed pipe again when it closes standard output.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.Abort from error

    def _known(self, ctx: click.Context, word: str) -> None:
        from rlplay.scenario.names import bundled, looks_like_code, looks_like_path
        from rlplay.spelling import nearest

        if looks_like_path(word) or word in bundled() or looks_like_code(word):
            return
        near = nearest(word, [*self.list_commands(ctx), *bundled()])
        hint = f"did you mean {near!r}?" if near else "see 'rlplay list' and 'rlplay --help'"
        raise click.UsageError(f"{quote(word)} is neither a scenario nor a command; {hint}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            return found + [item for item in play.play.shell_complete(ctx, incomplete) if item not in found]
        return found + SCENARIO.shell_complete(ctx, play.play.params[0], incomplete)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        formatter.write_usage("rlplay", "[SCENARIO] [OPTIONS]")
        formatter.write_usage("rlplay", "COMMAND [ARGUMENTS]", prefix="       ")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            formatter.write_dl(_EXAMPLES)
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(90)) for name in names])
        with formatter.section("Scenarios"):
            formatter.write_text(_SCENARIOS)
        for title, options in (("Options of a scenario", play.play.params), ("Options", self.get_params(ctx))):
            rows = [row for p in options if isinstance(p, click.Option) and (row := p.get_help_record(ctx)) is not None]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, message="rlplay %(version)s")
def cli() -> None:
    """Watch reinforcement learning on language models happen, token by token, and play with it."""
    from rlplay.scenario.load_plugins import join

    join()


for command in (
    *play.COMMANDS,
    *new.COMMANDS,
    *look.COMMANDS,
    *listing.COMMANDS,
    *foreign.COMMANDS,
    health,
    remove,
    settings,
    repair,
    teachers,
    trust,
):
    cli.add_command(command)


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit: 0 fine, 1 an expectation failed, 2 bad input, 3 a defect, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    with visible_output():
        _main(args)


def _main(args: list[str] | None) -> None:
    try:
        status = cli.main(args, prog_name="rlplay", standalone_mode=False)
    except click.NoSuchOption as error:
        _fail(error, _no_option(error), BAD_INPUT)
    except click.MissingParameter as error:
        example = error.ctx.command.epilog if error.ctx else ""
        _fail(error, f"{error.format_message().rstrip('. ')}. {example}", BAD_INPUT)
    except click.BadParameter as error:
        # The message has to name the option; an argument's message is clear without its name.
        _fail(error, error.format_message() if isinstance(error.param, click.Option) else error.message, BAD_INPUT)
    except (click.ClickException, ValueError) as error:
        _fail(error, error.format_message() if isinstance(error, click.ClickException) else str(error), BAD_INPUT)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    except OSError as error:
        _fail(
            error,
            f"{brief_path(str(error.filename)) if error.filename else _unnamed()}: {error.strerror or error}",
            BAD_INPUT,
        )
    except Exception as error:
        _fail(error, f"{type(error).__name__}: {error} (RLPLAY_DEBUG=1 shows where)", BROKEN)
    sys.exit(status if isinstance(status, int) else 0)


def _unnamed() -> str:
    """What an error of the system is about if it names no file."""
    try:
        os.getcwd()
    except OSError:
        return "the current folder is gone; go to another"
    return "the output cannot be written"


def _no_option(error: click.NoSuchOption) -> str:
    """The message for an unknown option: the likely one, or where to find all."""
    from rlplay.spelling import nearest

    context = error.ctx or click.Context(cli)
    options = [word for param in context.command.params for word in param.opts if word.startswith("--")]
    near = nearest(error.option_name.lstrip("-"), [word.lstrip("-") for word in (*options, "--help")])
    asked = "rlplay" if context.command is play.play else context.command_path
    hint = f"did you mean '--{near}'?" if near else f"'{asked} --help' lists the options"
    return f"no such option {quote(error.option_name)}; {hint}"


def _fail(error: BaseException, text: Any, status: int) -> None:
    if os.environ.get("RLPLAY_DEBUG"):
        traceback.print_exception(error)
    line = " ".join(map(brief_path, brief_quotes(visible(" ".join(str(text).split()))).split()))
    if len(line) > LONGEST_MESSAGE:  # it lists values of any number; the end says what to do
        line = f"{line[: LONGEST_MESSAGE // 2]} … {line[-LONGEST_MESSAGE // 2 :]}"
    print(f"rlplay: {line}", file=sys.stderr)
    sys.exit(status)
