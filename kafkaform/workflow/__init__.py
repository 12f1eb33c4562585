"""In: a folder, what a command line or a program asks for, callbacks. Out: what the commands do:
plans, applies, imports, transfers, recorded and returned as data.
Must not know: typer, rich, how anything is drawn. Nothing here prints or asks a person.
"""
