"""`python -m throughline`: the program."""

import os
import sys

from . import program

path = program()
os.execv(path, [path, *sys.argv[1:]])
