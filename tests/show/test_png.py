"""Our PNG files against Pillow, which reads them."""

import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image

from headscope.show.figures.png import png

PIXELS = arrays(np.uint8, array_shapes(min_dims=2, max_dims=2, max_side=40).map(lambda shape: (*shape, 3)))
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


@given(PIXELS, TEXT)
def test_what_is_written_is_what_is_read(pixels, text) -> None:
    content = png(pixels, {"Title": "A picture", "Description": text}, 200)
    with Image.open(io.BytesIO(content)) as image:
        assert np.array_equal(np.asarray(image), pixels)
        assert image.mode == "RGB"
        assert image.info["Title"] == "A picture"
        assert image.info["Description"] == text
        assert round(image.info["dpi"][0]) == 200
    with Image.open(io.BytesIO(content)) as image:
        image.verify()
