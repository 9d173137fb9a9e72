"""What is made of the times: needs no root and measures nothing.

Run with `python3 -m unittest discover -s benches/tests`.
"""

import sys
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fs import chart, figures, policies, report
from fs.measure import Results, rotated
from fs.rows import POLICY_SENSITIVE, ROW_BY_NAME, ROWS, with_prerequisites
from fs.variants import ALL
from fs.workloads import WORKLOADS


def results_with(**rows):
    return Results(seconds={name.replace("_", "-"): times for name, times in rows.items()})


class Figures(unittest.TestCase):
    def test_a_figure_is_the_median_of_the_ratios_within_a_repetition(self):
        results = results_with(stat={"native": [1, 10, 1], "bindfs": [2, 20, 9]})
        self.assertEqual(figures.figures_of(results, ROW_BY_NAME["stat"])["bindfs"], 2)

    def test_a_row_without_native_has_no_figures(self):
        results = results_with(stat={"bindfs": [2]})
        self.assertEqual(figures.lines(results, ("stat",)), [])

    def test_ringfence_is_marked_above_must_and_behind_a_peer(self):
        times = {"native": [1], "bindfs": [1.5], "development": [2.0], "agent-safe": [1.2]}
        (line,) = figures.lines(results_with(stat=times), ("stat",))
        self.assertEqual(line.marks["development"], (figures.OVER_MUST, figures.BEHIND_PEER))
        self.assertEqual(line.marks["agent-safe"], ())

    def test_the_cost_of_rules_is_a_geometric_mean_over_all_of_its_work(self):
        seconds = {name: {"full-access": [1], "development": [1]} for name in POLICY_SENSITIVE}
        seconds["grep"]["development"] = [32]
        values = figures.figures_of(Results(seconds=seconds), ROW_BY_NAME["rules-10"])
        self.assertAlmostEqual(values["development"], 2)
        del seconds["tar"]
        self.assertEqual(figures.figures_of(Results(seconds=seconds), ROW_BY_NAME["rules-10"]), {})


class Plans(unittest.TestCase):
    def test_every_row_is_measured_once_or_computed(self):
        measured = [row for workload in WORKLOADS for row in workload.rows]
        computed = ["rules-10", "rules-100", "policy-change"]
        self.assertEqual(sorted(measured + computed), sorted(ROW_BY_NAME))

    def test_a_computed_row_brings_the_rows_it_needs(self):
        self.assertEqual(set(with_prerequisites(("rules-10",))), {"rules-10", *POLICY_SENSITIVE})

    def test_every_variant_is_first_once(self):
        firsts = [rotated([1, 2, 3], repeat)[0] for repeat in range(3)]
        self.assertEqual(firsts, [1, 2, 3])

    def test_the_policy_of_a_hundred_rules_has_a_hundred(self):
        self.assertEqual(len(set(policies.hundred_rules())), 100)


class Presentation(unittest.TestCase):
    def setUp(self):
        times = {name: [index + 1.0] for index, name in enumerate(ALL)}
        measured = {row.name: times for row in ROWS if row.unit == "ratio"}
        results = Results(seconds=measured, policy_change_ms=[0.7], skipped={"bindfs": "a reason"})
        names = tuple(ROW_BY_NAME)
        self.run_ = report.Run({}, list(ALL), figures.lines(results, names), results)

    def test_tables_have_as_many_cells_in_every_line(self):
        for table in (report.variant_table(self.run_), report.policy_table(self.run_)):
            self.assertEqual(len({line.count("|") for line in table.splitlines()}), 1)

    def test_the_chart_is_well_formed_and_names_every_row(self):
        drawing = chart.svg(report.compared(self.run_), list(ALL))
        texts = {element.text for element in xml.etree.ElementTree.fromstring(drawing).iter()}
        self.assertLessEqual({line.row.title for line in report.compared(self.run_)}, texts)

    def test_skipped_variants_are_listed_with_the_reason(self):
        self.assertIn("bindfs: skipped, a reason", report.tables(self.run_))


if __name__ == "__main__":
    unittest.main()
