"""Named checks of MirrorMaker 2's configuration; `check_list` describes and runs them."""
