"""Numbers and tables as text."""

from meanfield.analysis.text import table


def test_tables_have_headings_a_rule_and_a_line_for_each_row():
    assert table(["a", "b"], [["1", "2"], ["3", "4"]]) == "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |"
    assert table(("a", "b"), []) == "| a | b |\n|---|---|"
