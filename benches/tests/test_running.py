"""What is made of the times and counts of starting and running: needs no root and measures nothing.

Run with `python3 -m unittest discover -s benches/tests`.
"""

import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import document
from fs.processes import CommandFailed
from running import chart, figures, measure, memory, report, tasks
from running.driver import Unavailable, understood
from running.measure import Results
from running.rows import CONTESTS, CROWDS, HOLDINGS, OUTPUTS, PRINTERS, ROWS, UNIT

ROW_BY_NAME = {row.name: row for row in ROWS}


def results_with(**series):
    return Results(micros={name.replace("_", "-"): times for name, times in series.items()})


class Figures(unittest.TestCase):
    def test_a_figure_is_the_median_of_the_ratios_within_a_repetition(self):
        results = results_with(spawn=[[1, 1, 9], [10, 10, 10], [1]], exec=[[2], [20, 20, 90], [9]])
        self.assertEqual(figures.make_line(results, ROW_BY_NAME["exec"]).ratio, 2)

    def test_the_p99_is_over_all_repetitions(self):
        results = results_with(spawn=[[10.0], [10.0]], session_exec=[[1.0] * 99, [1.0] * 99 + [30.0, 40.0]])
        line = figures.make_line(results, ROW_BY_NAME["session-exec-p99"])
        self.assertEqual(line.ratio, 3.0)

    def test_a_quantile_is_one_of_the_times_and_never_beyond_the_last(self):
        self.assertEqual(figures.quantile([3.0], 0.99), 3.0)
        self.assertEqual(figures.quantile([float(n) for n in range(100)], 0.99), 99)
        self.assertEqual(figures.quantile([1.0, 2.0], 0.5), 1.5)

    def test_what_is_not_available_is_a_row_with_the_reason(self):
        results = results_with(spawn=[[1.0]])
        results.unavailable["session-exec"] = "not yet"
        lines = [line for line in figures.lines(results) if line.row.series == "session-exec"]
        self.assertEqual([(line.ratio, line.reason) for line in lines], [(None, "not yet")] * 2)

    def test_a_row_over_must_is_marked_and_a_row_without_goal_never(self):
        results = results_with(spawn=[[1.0]], exec=[[3.1]], exec_shell=[[99.0]])
        over = {line.row.name: line.is_over for line in figures.lines(results)}
        self.assertEqual((over["exec"], over["exec-shell"]), (True, False))

    def test_a_unit_that_scatters_is_noticed(self):
        self.assertTrue(figures.is_steady(results_with(spawn=[[1.0], [1.2]])))
        self.assertFalse(figures.is_steady(results_with(spawn=[[1.0], [1.4]])))

    def test_how_far_ahead_is_peer_over_ours(self):
        results = results_with(docker_exec=[[60.0], [60.0]], exec=[[2.0], [3.0]])
        (score,) = figures.scores(results)
        self.assertEqual((score.contest.peer, score.factor), ("docker-exec", 25))

    def test_a_rate_is_megabytes_a_second(self):
        results = Results(micros={"seq-10/exec": [[50_000.0], [100_000.0], [20_000.0]]})
        (rates,) = figures.rates(results)
        self.assertEqual(rates.rates, {"exec": 200.0})

    def test_crowds_are_in_order_of_size_with_the_share_of_one(self):
        results = Results(micros={"crowd/100": [[400_000.0]], "crowd/10": [[50_000.0]]})
        shares = [(crowd.size, crowd.each_milliseconds) for crowd in figures.crowds(results)]
        self.assertEqual(shares, [(10, 5.0), (100, 4.0)])

    def test_bounds_of_memory_are_upper_ones_except_for_the_capacity(self):
        bad = {held.holding.name: held.is_bad for held in figures.held(Results(held={"idle": 7, "capacity": 299}))}
        self.assertEqual(bad, {"idle": True, "capacity": True})
        good = figures.held(Results(held={"idle": 6, "capacity": 300, "leftovers": 0, "idle-total": 1e9}))
        self.assertFalse(any(held.is_bad for held in good))


class Answers(unittest.TestCase):
    def test_times_and_wardens_are_what_they_say(self):
        self.assertEqual(understood(b'{"times":{"exec":[1.5]}}', "times", "exec"), {"exec": [1.5]})
        self.assertEqual(understood(b'{"wardens":[7]}', "wardens", "open"), [7])
        self.assertIsNone(understood(b'"done"', "done", "close"))

    def test_what_this_build_cannot_do_is_told_apart_from_what_failed(self):
        with self.assertRaisesRegex(Unavailable, "not yet"):
            understood(b'{"unavailable":"not yet"}', "times", "session-exec")
        with self.assertRaisesRegex(CommandFailed, "exec: broken"):
            understood(b'{"failed":"broken"}', "times", "exec")
        with self.assertRaises(CommandFailed):
            understood(b'"done"', "times", "exec")


class Visits(unittest.TestCase):
    def test_the_order_rotates_and_a_task_that_fails_is_left_out_with_its_reason(self):
        order = []

        def task(name, error=None):
            def run():
                order.append(name)
                if error:
                    raise error
                return {name: [1.0]}

            return tasks.Task((name,), run)

        results = Results()
        all_tasks = [task("a"), task("b", Unavailable("later")), task("c")]
        measure.visit(all_tasks, 2, results, "test")
        self.assertEqual(order, ["a", "b", "c", "c", "a"])
        self.assertEqual(results.micros, {"a": [[1.0], [1.0]], "c": [[1.0], [1.0]]})
        self.assertEqual(results.unavailable, {"b": "not available yet (later)"})

    def test_a_task_that_fails_late_takes_its_earlier_times_along(self):
        results = results_with(exec=[[1.0]])
        results.discard(tasks.Task(("exec",), dict), "broken")
        self.assertEqual((results.micros, results.unavailable), ({}, {"exec": "broken"}))


class Orders(unittest.TestCase):
    def test_the_length_of_a_sequence_is_what_seq_prints(self):
        for last in (1, 9, 10, 11, 99, 100, 12345):
            printed = "".join(f"{number}\n" for number in range(1, last + 1))
            self.assertEqual(tasks.length_of_numbers(last), len(printed))

    def test_the_last_number_is_the_first_that_is_enough(self):
        last = tasks.last_number(10_000_000)
        self.assertGreaterEqual(tasks.length_of_numbers(last), 10_000_000)
        self.assertLess(tasks.length_of_numbers(last - 1), 10_000_000)

    def test_bwrap_sees_a_merged_system_as_it_is(self):
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory)
            (root / "usr").mkdir()
            (root / "bin").symlink_to("usr/bin")
            text = " ".join(tasks.bwrap_command(Path("/base"), root))
        self.assertIn("--ro-bind /usr /usr --symlink usr/bin /bin --ro-bind /etc", text)
        self.assertTrue(text.endswith("--bind /base /workspace --chdir /workspace -- /bin/true"))


class Memory(unittest.TestCase):
    def test_a_field_is_read_in_bytes(self):
        rollup = "Rss:  300 kB\nPss:  123 kB\nPss_Anon:  99 kB\n"
        self.assertEqual(memory.field_bytes(rollup, "Pss"), 123 * 1024)
        self.assertEqual(memory.field_bytes(rollup, "Swap"), 0)

    def test_a_parent_is_found_behind_any_name(self):
        self.assertEqual(memory.parent_in("7 (a) (b c) S 42 7 7 0"), 42)

    def test_descendants_are_found_to_any_depth_and_once(self):
        parent_of = {2: 1, 3: 2, 4: 3, 5: 1, 6: 4}
        self.assertEqual(memory.with_descendants([2, 4], parent_of), [2, 4, 3, 6])

    def test_a_count_that_does_not_see_a_live_sandbox_is_named(self):
        before = {"mounts": 3, "cgroups": 0, "processes": 1}
        now = {"mounts": 3, "cgroups": 2, "processes": 4}
        self.assertEqual(memory.not_above(now, before), ["mounts"])


class Presentation(unittest.TestCase):
    def setUp(self):
        names = {UNIT, *(row.series for row in ROWS)}
        names |= {contest.ours for contest in CONTESTS} | {contest.peer for contest in CONTESTS}
        names |= {f"{output.name}/{printer}" for output in OUTPUTS for printer in PRINTERS}
        names |= {tasks.crowd_series(size) for size in CROWDS}
        results = Results(micros={name: [[float(place + 1)]] for place, name in enumerate(sorted(names))})
        results.held = {holding.name: 1.0 for holding in HOLDINGS}
        results.notes = ["a note"]
        self.run_ = report.Run({"mode": "test"}, tasks.FULL, results)

    def test_tables_have_as_many_cells_in_every_line(self):
        makers = ("times_table", "contests_table", "crowds_table", "outputs_table", "memory_table")
        for table in (getattr(report, maker)(self.run_) for maker in makers):
            self.assertEqual(len({line.count("|") for line in table.splitlines()}), 1)

    def test_every_row_is_in_its_table(self):
        table = report.times_table(self.run_)
        self.assertEqual([row.title for row in ROWS if row.title not in table], [])

    def test_the_chart_is_well_formed_and_names_every_row(self):
        drawing = chart.svg(figures.lines(self.run_.results))
        texts = {element.text for element in xml.etree.ElementTree.fromstring(drawing).iter()}
        self.assertLessEqual({row.title.replace("`", "") for row in ROWS}, texts)

    def test_numbers_of_the_run_are_in_the_titles(self):
        self.assertIn("after 10000 more execs", report.memory_table(self.run_))

    def test_a_report_of_two_parts_has_both_and_the_charts_they_have(self):
        parts = [report.running_part(self.run_), report.memory_part(self.run_)]
        with tempfile.TemporaryDirectory() as directory:
            document.write(parts, {"kernel": "6"}, Path(directory))
            written = sorted(path.name for path in Path(directory).iterdir())
            text = (Path(directory) / "report.md").read_text()
        self.assertEqual(written, ["report.md", "results.json", "running.svg"])
        for piece in ("## Starting and running", "## Memory", "- a note", "- kernel: 6", "![chart](running.svg)"):
            self.assertIn(piece, text)


class Groups(unittest.TestCase):
    def test_groups_and_rows_can_be_chosen(self):
        import run

        self.assertEqual(run.select(["running"]), run.Selection((), True, False, False, False))
        self.assertEqual(run.select(["memory", "stat"]), run.Selection(("stat",), False, True, False, False))
        every = run.select(list(run.GROUPS))
        self.assertTrue(every.running and every.memory and every.api and every.python and len(every.rows) > 20)


if __name__ == "__main__":
    unittest.main()
