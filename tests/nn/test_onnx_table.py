"""The table of operators against the definitions of the package `onnx`: versions, attributes, defaults, inputs."""
from __future__ import annotations

import numpy as np
import pytest

from tests.nn.onnx_models import onnx
from tinyhw.core.errors import LayoutError
from tinyhw.nn.onnx import model as model  # noqa: PLC0414  # fills the table
from tinyhw.nn.onnx.table import NEWEST, OLDEST, REQUIRED, STANDARD, Operator, declared, find, operator

ROWS = [row for row in declared() if row.domain == STANDARD]
KINDS = {"INT": "int", "FLOAT": "float", "STRING": "str", "INTS": "Ints", "FLOATS": "Floats", "STRINGS": "Strings",
         "GRAPH": "Graph", "TENSOR": "Weights", "TYPE_PROTO": "Type"}


NUMBERED = [f"{r.name}-{[x.name for x in ROWS[:i]].count(r.name)}" for i, r in enumerate(ROWS)]


@pytest.mark.parametrize("row", ROWS, ids=NUMBERED)
def test_a_row_is_as_onnx_defines_it(row: Operator) -> None:
  if max(row.since) > onnx.defs.onnx_opset_version(): pytest.skip("the package is older than the operator")
  for version in row.since:
    schema = onnx.defs.get_schema(row.name, version, "")
    assert schema.since_version == version, f"no version {version}"
    for name, a in schema.attributes.items():
      if name == "sparse_value": continue  # sparse tensors are refused
      assert name in row.attributes, f"attribute {name} of version {version}"
      mine = row.attributes[name]
      assert mine.kind == KINDS[a.type.name], name
      if version != max(row.since): continue  # an older version may ask for more
      assert (mine.default is REQUIRED) == a.required, name
      if a.default_value.name:
        theirs = onnx.helper.get_attribute_value(a.default_value)
        theirs = theirs.decode() if isinstance(theirs, bytes) else theirs
        if mine.kind == "float": assert np.float32(mine.default) == np.float32(theirs), name
        elif mine.kind == "Strings": assert list(mine.default) == [t.decode() for t in theirs]
        else: assert (list(mine.default) if mine.kind == "Ints" else mine.default) == theirs, name
    # Fewer inputs than a version's most are no loss: what is left out gives None.
    if row.most is not None: assert len(schema.inputs) <= row.most
    assert row.least <= schema.min_input


def test_no_version_that_a_model_may_import_is_left_out() -> None:
  """For every opset the table gives the version that is in force there."""
  names = {r.name for r in ROWS}
  newest = min(NEWEST, onnx.defs.onnx_opset_version())
  for name in sorted(names):
    for opset in range(OLDEST, newest + 1):
      try: schema = onnx.defs.get_schema(name, opset, "")
      except onnx.defs.SchemaError: continue
      if schema.deprecated: continue
      found = find(STANDARD, name, opset)
      assert found is not None and found[1] == schema.since_version, (name, opset, schema.since_version)


def test_a_row_that_contradicts_another_is_refused() -> None:
  with pytest.raises(LayoutError, match="a version of .* twice"): operator("Relu", 14)(lambda: None)
  with pytest.raises(LayoutError, match="are no list"): operator("Relu", 99, 98)(lambda: None)
