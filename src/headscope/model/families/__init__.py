"""What is peculiar to one model family, a small file each.

A family that uses transformers' attention interface needs nothing here.
One that does not says where its head outputs and attention maps can be had: see `mpnet`.
"""

from headscope.model.families import bloom, debertav2, falcon, gptj, mpnet, mpt
from headscope.model.families.hooked import Hooked

HOOKED: dict[str, Hooked] = {
    "bloom": bloom.HOOKED,
    "deberta-v2": debertav2.HOOKED,
    "falcon": falcon.HOOKED,
    "gptj": gptj.HOOKED,
    "mpnet": mpnet.HOOKED,
    "mpt": mpt.HOOKED,
}
"""`config.model_type` -> where to hook."""
