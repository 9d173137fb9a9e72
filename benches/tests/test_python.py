"""What is asked of Python clients and made of their times: needs no root and measures nothing.

Run with `python3 -m unittest discover -s benches/tests`.
"""

import json
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import document
from api.server import Served
from python import report, tasks, trees
from python.rows import AGAIN, CROWDS, HOLDINGS, PEERS, ROWS
from python.site import WORKER, Place, Site
from running.measure import Results
from running.report import Run
from running.rows import UNIT

HERE = Path("/nowhere")


class Client:
    """Answers as a worker does, and keeps what it was asked."""

    def __init__(self):
        self.orders = []

    def times(self, work, /, **details):
        self.orders.append((work, details))
        parts = {"life": ("usable", "destroy"), "files": ("upload", "download")}.get(work, ("only",))
        return {part: [1.0] for part in parts}


def site_with(client, scratch=HERE):
    place = Place(HERE / "ringfence", HERE / "driver", HERE / "python", HERE, HERE, tasks.QUICK)
    return Site(place, scratch, Served(client, 7, "127.0.0.1:1"), client, client, client)


def series_of(all_tasks):
    return {series for task in all_tasks for series in task.series}


class Orders(unittest.TestCase):
    def test_every_task_of_a_worker_answers_with_the_series_it_names(self):
        with tempfile.TemporaryDirectory() as directory:
            site = site_with(Client(), Path(directory))
            all_tasks = [*tasks.tasks(site), *tasks.upload_tasks(site), tasks.crowd_task(site, 10)]
            for task in all_tasks:
                if not task.series[0].startswith("program/"):
                    self.assertEqual(set(task.run()), set(task.series))

    def test_every_row_and_contest_is_made_of_times_that_are_taken(self):
        site = site_with(Client())
        taken = series_of(tasks.tasks(site)) | series_of(tasks.upload_tasks(site))
        wanted = {row.series for row in ROWS} | {side for each in PEERS for side in (each.peer, each.ours)}
        self.assertLessEqual(wanted, taken)

    def test_both_clients_are_asked_the_same(self):
        with tempfile.TemporaryDirectory() as directory:
            ours, published = Client(), Client()
            place = site_with(Client()).place
            site = Site(place, Path(directory), Served(Client(), 7, "127.0.0.1:1"), Client(), ours, published)
            for task in [*tasks.tasks(site), *tasks.upload_tasks(site)]:
                if not task.series[0].startswith("program/"):
                    task.run()
        for client in (ours, published):
            for _, details in client.orders:
                details.pop("base", None)
        self.assertTrue(ours.orders)
        self.assertEqual(ours.orders, published.orders)


class Worker(unittest.TestCase):
    """The real program, with a package that is none of the clients."""

    def asked(self, *orders):
        lines = "".join(json.dumps(order) + "\n" for order in orders)
        done = subprocess.run(
            [sys.executable, str(WORKER), "json"], input=lines, capture_output=True, text=True, timeout=60
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_what_goes_wrong_is_an_answer_and_the_next_order_is_done(self):
        failed, closed = self.asked({"work": "start", "base": "/nowhere"}, {"work": "close"})
        self.assertIn("AttributeError", failed["failed"])
        self.assertEqual(closed, "done")


class Trees(unittest.TestCase):
    def test_the_second_time_is_told_from_the_first_and_the_worst_is_held(self):
        results = Results()
        trees.put_down(results, pushed(9.0, 20, 5e6), [pushed(1.0, 0, 1e6), pushed(2.0, 3, 2e6)], [pushed(4.0, 1, 5e6)])
        self.assertEqual(results.micros["tree/first"], [[9.0]])
        self.assertEqual(results.micros["tree/second"], [[1.0, 2.0]])
        self.assertEqual(results.micros["tree/uncached"], [[4.0]])
        self.assertEqual(results.held, {"sent-again": 3, "read-again": 2.0, "read-first": 5.0})


def pushed(micros, sent, read):
    return {"micros": micros, "sent": sent, "read": read}


class Presentation(unittest.TestCase):
    def setUp(self):
        names = {UNIT, *(row.series for row in ROWS), *(tasks.crowd_series(size) for size in CROWDS)}
        names |= {side for contest in (*PEERS, *AGAIN) for side in (contest.peer, contest.ours)}
        results = Results(micros={name: [[float(place + 1)]] for place, name in enumerate(sorted(names))})
        results.held = {holding.name: 1.0 for holding in HOLDINGS}
        results.notes = ["a note"]
        results.unavailable = {"python": "no network"}
        self.run_ = Run({"mode": "test"}, tasks.FULL, results)

    def test_every_row_contest_and_holding_is_in_the_report(self):
        tables, numbers = report.python_part(self.run_).tables, tasks.FULL.named()
        shown = [*ROWS, *PEERS, *AGAIN, *HOLDINGS]
        self.assertEqual([each.title for each in shown if each.title.format(**numbers) not in tables], [])
        for said in ("- a note", "- python: no network", "tree of 25000 files"):
            self.assertIn(said, tables)

    def test_tables_have_as_many_cells_in_every_line(self):
        for table in report.python_part(self.run_).tables.split("\n\n"):
            lines = [line for line in table.splitlines() if line.startswith("|")]
            self.assertLessEqual(len({line.count("|") for line in lines}), 1)

    def test_what_misses_its_goal_is_marked_and_what_has_none_is_not(self):
        micros = {"upload/tcp": [[10.0]], "upload/published": [[19.0]], "run/tcp": [[2.0]], "run/published": [[1.0]]}
        upload, run = report.peers_table(Run({}, tasks.FULL, Results(micros=micros))).splitlines()[2:]
        self.assertIn("1.90 ✗", upload)
        self.assertNotIn("✗", run)

    def test_the_chart_is_written_and_well_formed(self):
        with tempfile.TemporaryDirectory() as directory:
            document.write([report.python_part(self.run_)], {}, Path(directory))
            drawing = (Path(directory) / "python.svg").read_text()
        texts = {element.text for element in xml.etree.ElementTree.fromstring(drawing).iter()}
        self.assertIn("a program with one sandbox, from start to end", texts)


if __name__ == "__main__":
    unittest.main()
