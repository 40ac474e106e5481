"""MPNet: attention with a relative position bias, written out inside the module."""

from headscope.families.hooked import Hooked

HOOKED = Hooked(attention="MPNetSelfAttention", projection="o")
