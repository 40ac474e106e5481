"""Builds the compiled part, linear layers, attention and what is counted of it: on x86-64 once for each generation of
processors, one of which is chosen when it is loaded. Where there is no compiler headscope is installed without it, and
measures in plain torch."""

import platform
import sys

from setuptools import Extension, setup

BUILDS = {"_compiled": []}
if platform.machine() in ("x86_64", "AMD64"):
    BUILDS["_compiled_avx2"] = ["-march=x86-64-v3"]
    BUILDS["_compiled_avx512"] = ["-march=x86-64-v4", "-mprefer-vector-width=512"]
if sys.platform == "win32":  # whose compiler has no vectors of its own
    BUILDS = {}

setup(
    ext_modules=[
        Extension(
            f"headscope.{name}",
            [f"src/headscope/{name}.c" for name in ("model/attention", "model/linear", "measure/kernel")],
            include_dirs=["src/headscope"],
            depends=["src/headscope/vectors.h"],
            extra_compile_args=["-std=gnu11", "-O3", "-Wno-psabi", *flags],
            py_limited_api=True,
            optional=True,
        )
        for name, flags in BUILDS.items()
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
