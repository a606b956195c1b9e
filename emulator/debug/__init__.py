"""Looking into a dispatch: the kernel debugger, and the report of what a run did.

Reading order: `engine` runs a dispatch instruction by instruction, `code` names places, `wave` shows registers,
`expression` and `breaks` say when to stand, `snapshot` keeps and compares states, `debugger` puts them together.
`record` counts what a run does (`traffic` has the models of memory, `follow` what follows values that are not exact),
`report` reads the counts, `page` shows them as HTML.
"""
