"""What is peculiar to one model family, a small file each.

A family that uses transformers' attention interface needs nothing here.
One that does not says where its head outputs and attention maps can be had: see `mpnet`.
"""

from headscope.families import mpnet
from headscope.families.hooked import Hooked

HOOKED: dict[str, Hooked] = {"mpnet": mpnet.HOOKED}
"""`config.model_type` -> where to hook."""
