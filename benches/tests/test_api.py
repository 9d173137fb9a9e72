"""What is made of the times and counts of the API: needs no root and measures nothing.

Run with `python3 -m unittest discover -s benches/tests`.
"""

import sys
import tempfile
import unittest
import xml.etree.ElementTree
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import document
from api import figures, pushes, report, tasks
from api.rows import CONTESTS, COPIES, HOLDINGS, OVERHEADS, ROWS
from api.server import Served, served
from fs.processes import CommandFailed
from running.measure import Results
from running.report import Run
from running.rows import CROWDS, OUTPUTS, UNIT


class Asked:
    """Answers as the driver does, and keeps what it was asked."""

    def __init__(self):
        self.orders = []

    def ask(self, work, expected, /, **details):
        self.orders.append(details)
        return {"pid": 7, "address": "127.0.0.1:1"} if expected == "server" else None

    def order(self, work, /, **details):
        self.ask(work, "done", **details)

    def times(self, work, /, **details):
        self.orders.append(details)
        parts = ("start", "usable") if details.get("ask") == "life" else ("only",)
        return {part: [1.0] for part in parts}


def site_with(driver, **changes):
    here = Path("/nowhere")
    site = tasks.Site(
        small=here / "small",
        large=here / "large",
        outputs=here / "outputs",
        binary=here / "ringfence",
        scratch=here,
        served=Served(driver, 7, "127.0.0.1:1"),
        published=None,
        counts=tasks.QUICK,
    )
    return replace(site, **changes)


class Figures(unittest.TestCase):
    def test_an_overhead_is_the_time_over_the_echo_in_the_same_repetition(self):
        results = Results(micros={"info/tcp": [[2.0], [30.0]], "echo/tcp": [[1.0], [10.0]]})
        (share,) = figures.shares(results)
        self.assertEqual((share.ratio, share.is_over), (2.5, True))

    def test_what_is_spent_in_the_warden_is_taken_off(self):
        micros = {"session/tcp": [[9.0], [12.0]], "straight": [[6.0], [8.0]], "echo/tcp": [[2.0], [4.0]]}
        (share,) = figures.shares(Results(micros=micros))
        self.assertEqual((share.ratio, share.is_over), (1.25, False))

    def test_an_overhead_needs_all_its_parts(self):
        self.assertEqual(figures.shares(Results(micros={"session/tcp": [[9.0]], "echo/tcp": [[1.0]]})), [])

    def test_copies_are_in_milliseconds_and_in_order_of_files(self):
        results = Results(micros={"fork/10000": [[3000.0], [1000.0]], "fork/100": [[500.0]]})
        (copied,) = figures.copies(results)
        self.assertEqual(list(copied.milliseconds.items()), [(100, 0.5), (10_000, 2.0)])


class Orders(unittest.TestCase):
    def test_every_task_answers_with_the_series_it_names(self):
        site = site_with(Asked())
        short = [*tasks.tasks(site), *tasks.output_tasks(site), *tasks.copy_tasks(site)]
        for task in [*short, tasks.crowd_task(site, 10)]:
            self.assertLessEqual(set(task.run()), set(task.series))

    def test_every_row_and_overhead_is_made_of_times_that_are_taken(self):
        taken = {series for task in tasks.tasks(site_with(Asked())) for series in task.series}
        wanted = {row.series for row in ROWS} | {overhead.series for overhead in OVERHEADS}
        self.assertLessEqual(wanted | {overhead.echo for overhead in OVERHEADS}, taken)

    def test_every_contest_is_between_times_that_are_taken(self):
        site = site_with(Asked(), published=Path("/python"))
        taken = {series for task in pushes.tasks(site) for series in task.series}
        wanted = {series for contest in CONTESTS for series in (contest.peer, contest.ours)}
        self.assertLessEqual(wanted, taken | {"push/first", "push/second"})

    def test_without_the_published_client_only_our_own_uploads_are_timed(self):
        taken = {series for task in pushes.tasks(site_with(Asked())) for series in task.series}
        self.assertEqual(taken, {"push/start", "upload", "download"})

    def test_a_server_is_started_and_ended_through_the_driver(self):
        driver = Asked()
        with served(driver) as server:
            server.open(Path("/base"), 2, start=False)
        self.assertEqual([order["ask"] for order in driver.orders], ["serve", "open", "end"])
        self.assertEqual((server.pid, driver.orders[1]["start"]), (7, False))


class Uploads(unittest.TestCase):
    def test_no_two_files_that_are_uploaded_are_the_same(self):
        with tempfile.TemporaryDirectory() as directory:
            site = site_with(Asked(), scratch=Path(directory))
            trees = [pushes.fresh_files(site, number) for number in (0, 1)]
            contents = [path.read_bytes() for tree in trees for path in tree.iterdir()]
        self.assertEqual(len(set(contents)), 2 * tasks.QUICK.files)
        self.assertEqual({len(content) for content in contents}, {pushes.FILE_BYTES})

    def test_how_many_files_were_sent_is_read_from_what_the_command_says(self):
        self.assertEqual(pushes.files_sent("left out: x\n1200 files, 3.1 MB: 17 sent, 40 kB\n"), 17)
        with self.assertRaises(CommandFailed):
            pushes.files_sent("")


class Presentation(unittest.TestCase):
    def setUp(self):
        names = {UNIT, *(row.series for row in ROWS)}
        names |= {overhead.series for overhead in OVERHEADS} | {overhead.echo for overhead in OVERHEADS}
        names |= {contest.ours for contest in CONTESTS} | {contest.peer for contest in CONTESTS}
        names |= {f"{output.name}/{printer}" for output in OUTPUTS for printer in ("exec", "session")}
        names |= {tasks.crowd_series(size) for size in CROWDS}
        names |= {tasks.copy_series(copy.name, files) for copy in COPIES for files in tasks.FULL.changed}
        results = Results(micros={name: [[float(place + 1)]] for place, name in enumerate(sorted(names))})
        results.held = {holding.name: 1.0 for holding in HOLDINGS}
        results.notes = ["a note"]
        results.unavailable = {"published/start": "no network"}
        self.run_ = Run({"mode": "test"}, tasks.FULL, results)

    def test_tables_have_as_many_cells_in_every_line(self):
        for table in report.api_part(self.run_).tables.split("\n\n"):
            lines = [line for line in table.splitlines() if line.startswith("|")]
            self.assertLessEqual(len({line.count("|") for line in lines}), 1)

    def test_every_row_overhead_copy_contest_and_holding_is_in_the_report(self):
        tables, numbers = report.api_part(self.run_).tables, tasks.FULL.named()
        shown = [*ROWS, *OVERHEADS, *COPIES, *CONTESTS, *HOLDINGS]
        self.assertEqual([each.title for each in shown if each.title.format(**numbers) not in tables], [])

    def test_notes_and_reasons_are_told(self):
        tables = report.api_part(self.run_).tables
        self.assertIn("- a note", tables)
        self.assertIn("- published/start: no network", tables)

    def test_what_misses_its_goal_is_marked(self):
        results = Results(micros={"fork/100": [[5100.0]], "upload": [[10.0]], "published/upload": [[19.0]]})
        run = Run({}, tasks.FULL, results)
        self.assertIn("5.10 ✗", report.copies_table(run))
        self.assertIn("1.90 ✗", report.uploads_table(run))

    def test_the_chart_is_written_and_well_formed(self):
        with tempfile.TemporaryDirectory() as directory:
            document.write([report.api_part(self.run_)], {}, Path(directory))
            drawing = (Path(directory) / "api.svg").read_text()
        texts = {element.text for element in xml.etree.ElementTree.fromstring(drawing).iter()}
        self.assertIn("GetSandbox, TCP", texts)


if __name__ == "__main__":
    unittest.main()
