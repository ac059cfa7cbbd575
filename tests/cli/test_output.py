"""Results as JSON on standard output."""

import json
import math

from meanfield.cli.output import print_json


def test_numbers_that_json_lacks_are_null(capsys):
    print_json({"values": [1.5, math.nan, math.inf], "least": -math.inf, "nested": {"pair": (0.0, math.inf)}})
    found = json.loads(capsys.readouterr().out)
    assert found == {"values": [1.5, None, None], "least": None, "nested": {"pair": [0.0, None]}}
