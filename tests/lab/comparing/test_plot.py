"""The plot of a comparison: what it shows, and that no limit of an axis hides it."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

from lab.comparing.numbers import Comparison
from lab.comparing.plot import MOST_LABELS, draw, figure_of
from lab.errors import UserError

INF, NAN = math.inf, math.nan


def marks(axes, marker):
    return sorted(line.get_xdata()[0] for line in axes.lines if line.get_marker() == marker)


def curves(axes):
    return [line for line in axes.lines if line.get_marker() == "None"]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("count", [1, 2, 30, MOST_LABELS + 10])
def test_every_row_has_a_curve_and_a_look_of_its_own(run, count):
    figure = figure_of(Comparison([run(f"{i}", lr=i) for i in range(count)]))
    lines = curves(figure.axes[0])
    looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in lines}
    assert len(lines) == len(looks) == count
    assert len(set(legend(figure))) == min(count, MOST_LABELS)
    title = figure.legends[0].get_title().get_text()
    assert title == ("" if count <= MOST_LABELS else f"{MOST_LABELS} of {count} rows")


def test_the_plot_marks_the_first_difference(run):
    figure = figure_of(Comparison([run("a"), run("b", [3.0, 2.5, 1.0], function="relu")]))
    losses, differences = figure.axes
    assert (losses.get_yscale(), differences.get_yscale()) == ("log", "log")
    assert marks(differences, "^") == [1]
    assert "relu\n  first difference: step 1\n  largest relative difference:\n  25 % at step 1" in (
        legend(figure)
    )
    assert "by function" in losses.get_title()


def test_the_axes_reach_what_the_table_says(run):
    chance = np.random.default_rng(0)
    runs = [
        run(f"{function}{seed}", chance.lognormal(0, 3, 30).tolist(), function=function, seed=seed)
        for function in ("a", "b", "c")
        for seed in range(10)
    ]
    runs += [run("d", chance.lognormal(0, 9, 30).tolist(), function="d")]
    for some in (
        runs,
        [one for one in runs if one.summary.seed == 0],
        [o for o in runs if o.summary.seed < 4],
    ):
        comparison = Comparison(some)
        above, below = figure_of(comparison).axes
        for row in comparison.rows:
            for entry in row.entries:
                shown = entry.run.losses[entry.run.losses <= 100 * entry.run.losses[0]]
                assert above.get_ylim()[0] < shown.min() <= shown.max() < above.get_ylim()[1]
                assert above.get_xlim()[0] < 0 < 29 < above.get_xlim()[1]
            for found in row.differences:
                if row.label != "d":
                    assert below.get_ylim()[0] < found.largest_difference < below.get_ylim()[1]


def test_a_diverged_run_stretches_no_axis_and_is_marked(run):
    rising = [3.0, 2.0, 1e9, 1e30, 1e38, INF]
    runs = [run("a", [3.0, 2.0, 1.0, 0.5, 0.4, 0.3]), run("b", rising, status="diverged", lr=9)]
    above, below = figure_of(Comparison(runs)).axes
    assert above.get_ylim()[1] < 10
    assert (marks(above, "x"), marks(below, "x")) == ([2], [2])
    assert marks(below, "^") == [2]
    runs += [run("c", [3.0, 2.0, 1.0, 0.5, 0.4, 0.8], lr=8)]
    above, below = figure_of(Comparison(runs)).axes
    assert below.get_ylim()[1] < 100


def test_where_every_curve_rises_all_is_shown(run):
    rising = [3.0, 2.0, 1e9, 1e30]
    above, _ = figure_of(Comparison([run("a", rising), run("b", rising, lr=9)])).axes
    assert above.get_ylim()[1] > 1e30
    assert marks(above, "x") == []


def test_a_difference_that_no_axis_can_show_is_marked(run):
    runs = [run("a", [3.0, 0.0, 1.0]), run("b", [3.0, 2.0, 1.5], lr=9)]
    assert marks(figure_of(Comparison(runs)).axes[1], "x") == [1]


@pytest.mark.parametrize("seeds", [1, 2, 8])
def test_several_seeds_are_a_median_over_thin_curves(run, seeds):
    chance = np.random.default_rng(0)
    losses = {f: chance.random((seeds, 9)) for f in ("a", "b")}
    runs = [
        run(f"{function}{seed}", losses[function][seed].tolist(), function=function, seed=seed)
        for function in losses
        for seed in range(seeds)
    ]
    above, below = figure_of(Comparison(runs)).axes
    thin = seeds if seeds > 1 else 0
    assert len(curves(above)) == 2 * (1 + thin)
    assert len(curves(below)) == 1 + thin
    thick = {line.get_color(): line for line in curves(above) if line.get_linewidth() > 1}
    for line, function in zip(thick.values(), losses, strict=True):
        assert np.allclose(line.get_ydata(), np.median(losses[function], axis=0))
    (differences,) = [line for line in curves(below) if line.get_linewidth() > 1]
    pairs = np.abs(losses["b"] - losses["a"]) / losses["a"]
    assert np.allclose(differences.get_ydata(), np.median(pairs, axis=0))
    assert len({line.get_color() for line in curves(above)}) == 2


def test_the_median_ends_where_the_first_of_the_curves_ends(run):
    short = run("b", [1.0, INF], seed=1, status="diverged")
    above, _ = figure_of(Comparison([run("a"), short, run("c", [5.0, 4.0, 3.0], seed=2)])).axes
    (median,) = [line for line in curves(above) if line.get_linewidth() > 1]
    assert median.get_xdata().tolist() == [0, 1]
    assert median.get_ydata().tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    "losses", [[INF], [NAN], [0.0], [-1.0, -2.0], [1e308, 5e-324], [NAN, NAN], [0.0, 1e300]]
)
@pytest.mark.parametrize("seeds", [1, 3, 9])
def test_any_losses_can_be_drawn(run, tmp_path, losses, seeds):
    runs = [run(f"{i}", losses, status="diverged", seed=i, lr=9) for i in range(seeds)]
    draw(Comparison([*runs, run("b")]), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["$x^2$", "a\nb", "$\\frac", "b\udcff", "\u6f22", "x" * 200])
def test_any_name_can_be_drawn(run, tmp_path, name):
    runs = [run(f"{i}{name}") for i in range(2)]
    comparison = Comparison(runs)
    labels = [row.label for row in comparison.rows]
    assert all(label.isprintable() for label in labels)
    draw(comparison, tmp_path / "plot.png")
    shown = ["".join(text.split("\n  ")[0].split()) for text in legend(figure_of(comparison))]
    assert shown == labels


def test_a_symbolic_link_is_written_through(run, tmp_path):
    (tmp_path / "link.png").symlink_to("file.png")
    draw(Comparison([run("a")]), tmp_path / "link.png")
    assert (tmp_path / "link.png").is_symlink()
    assert (tmp_path / "file.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_that_cannot_be_written_is_the_users_mistake(run, tmp_path):
    comparison = Comparison([run("a")])
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "folder.png").mkdir()
    for name, said in {
        "plot.xyz": "is not a supported image format",
        "none/plot.png": "No such file",
        "pipe.png": "is a device or a pipe",
        "folder.png": "is a folder",
    }.items():
        with pytest.raises(UserError, match=f"{tmp_path / name}.*{said}"):
            draw(comparison, tmp_path / name)
