"""python -m headscope"""

from headscope.cli import main

main()
