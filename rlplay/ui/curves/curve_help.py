"""The help of the curve panels."""

from __future__ import annotations

from rlplay.ui.format.legend import LOOKED_AT
from rlplay.ui.position.position_hands import POSITION_HELP
from rlplay.ui.world.map_hands import MAP_HELP

HELP = f"""\
# Curves

One number per update, drawn over the whole run.

`←` and `→`, or a click, move a cursor in all panels at once; the titles then show the values at the cursor. `enter`, or
a second click, shows that update.
`↑` and `↓` show another metric here. `L` switches between a linear and a logarithmic scale. `S` draws a moving average
as TensorBoard does, of weight .6, then .9, then none; the values stay in grey beneath it. The numbers in the title and
at the cursor are never smoothed.
`esc` returns to the latest values.

The bars in the title of **Length** count the answers of the update on the screen by length: equal bins from the
shortest to the longest; the last may be narrower.

Marks below updates: ◆ a changed setting took effect, ↶ the run went back to this update, ↷ the run was resumed here.
Put the cursor on a mark to read the details. At ┊ a new stage begins, and the curves start again: they measure another
loss, other answers or another reward. While an older update is on the screen, {LOOKED_AT} marks it and its column is
highlighted.

● is the newest update, ○ a value on held-out prompts. A second metric has its course over the run, from 0 to its
largest value, as small bars in the border, with its last value. The thin grey line `before undo` is what the run
discarded when it last went back. × marks a value that was not a number.

If every reward is 0 or 1, the reward is the share of right answers, and its scale ends at 1. Other rewards have a
shade: between its edges are the rewards of the middle 80 % of the answers (10 % earned less, 10 % more). It is the
spread of single answers, not the error of the mean.

While a lesson asks how a curve goes on, its frame is bright. The dashed arrow is `your guess`: it has a direction, and
its height means nothing. The curve is then drawn over it.

A solid and a dashed line (**Reward over gold**) are two metrics in one plot, with their held-out values as points.
“Left” and “right” name the scale of each: their heights do not compare. “Same scale” says that they do; between the
lines is then the colour of the upper one. So it is in a comparison of two runs.

**Ratio** is different: bars show the distribution of the importance ratios in the last optimizer step, with counts on a
logarithmic scale and lines at 1 − ε and 1 + ε; the number at the left is that of the highest bar. The bright part of a
bar is clipped: A > 0 above the band or A < 0 below it, so the surrogate's gradient is exactly zero (a KL term or an
entropy bonus in the loss still acts). Tokens outside the band on the other side still get a gradient. Clipping does not
bound the ratio.

**Pull map** (`P`) has every sampled token at its importance ratio across and its advantage A up: • for 1 or 2 tokens,
● from 3 on, █ from 10 on. Blue dots have A > 0, orange ones A < 0, by the majority. In the last of several optimizer
steps, a yellow × has clipped tokens: the surrogate gives them no gradient. With one step per batch every ratio in that
step is 1, so the map shows the ratio after the update; it then takes the place of Ratio too. "Moved as their advantage
asked" is the share of tokens that became likelier with A > 0 or less likely with A < 0, of all that moved. Tokens
share weights, so it need not be 100 %. Until the next update has its ratios, the map of the one before remains. Ratios
beyond the ends are drawn at the ends, marked ≤ and ≥. Drag a box with the mouse, or press `enter` for one region after
the other (between 1 and the bounds, A > 0, then A < 0): Tokens and Answers then show only what is in it, its edges
excluded, in every update. `f` and `F` go from token to token, `esc` shows all again. Tokens names the box as `/` takes
it, as in `ratio 0.8..1.2 A 0..`; an end without a number is open.

**Trust region** replaces Ratio if surrogate=trpo: the search for one step. Each bar is an iteration of conjugate
gradient; its height is the residual (logarithmic, three orders of magnitude). Below are the steps tried, as shares of
the way to the KL limit, each with its exact KL, the gain of the surrogate, and whether it was taken.

**Belief** (`B`) stacks the probabilities of the next token, one column for each update. The place is the token under
the cursor, at first the first token of the first answer. Each band is one token: its height is the probability under
the policy that sampled that update, at the sampling temperature. “Others” is the rest of 1. If most updates ask the
same prompt, the river is of that prompt. Otherwise it is the mean over all prompts of an update whose answers began
with the same tokens, and the title gives their number; other prompts then move the bands, too, so in a long run each
column is the mean of neighbouring updates. So it is where several updates share a column. The title says of how many;
the numbers below are of single updates. A token that is not among the recorded candidates of a prompt counts as 0
there. An update in which no answer came by this place leaves a gap. In a world, the place is the square. The line
below gives each token's probability in the first and in the last update, the most changed first; in little room, it
names the bands without a name in the picture.

**Answer tree** (`T`) shows the answers to one prompt of the update on the screen, merged token by token as far as they
agree. The bar behind a text is as long as the share of answers that begin this way. At the right are their number and
their mean reward, a Monte-Carlo estimate of the value of this beginning. Green is above the mean reward of all answers
to the prompt, red below it. If every reward of the update is 0 or 1, ✓ and ✗ mark whole answers. Where all answers are
the same text, the trees of the next prompts follow. `▸` marks a branch that has no room to open. The highlighted line
has the token under the cursor: `i` opens the probe there. `[` and `]` go through the updates.

{POSITION_HELP}{MAP_HELP}
**Learning map** (`E`) counts the prompts that are never trained on, a column for each evaluation, in bands by what
becomes of them. A column reaches half-way to the next one; between them nothing was measured. Every evaluation asks the
same prompts with the same random numbers, so a change comes from the policy. Every band is as high as its number of
prompts; its bright part is right at that evaluation, its dim part is not. A prompt counts as right if its mean reward
is at least half-way between the lowest and the highest of the run. **Always** and **never**: right at every evaluation,
or at none. **Learned**: wrong at first and right at last. **Forgotten**: the reverse. **Wavered**: at last as at first,
but not in between. The title counts the right prompts at the first and at the last evaluation. `enter`, or a second
click, opens the answers themselves.
"""
