"""A Conan 2 recipe. Untried: see README.md."""
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load


class ReelRecipe(ConanFile):
    name = "reel"
    license = "MIT"
    description = "Tensors, tape autodiff, traces and loops"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}
    generators = "CMakeDeps"

    def _root(self):
        return os.path.dirname(self.recipe_folder)

    def set_version(self):
        text = load(self, os.path.join(self._root(), "core/base/version.h"))
        self.version = ".".join(re.findall(r"REEL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", text))

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "*.h", "*.cpp", "*.cmake", "*.in", "*.py", "*.js", "*.md", "LICENSE"):
            copy(self, pattern, self._root(), self.export_sources_folder, excludes="build/*")

    def requirements(self):
        self.requires("boost/[>=1.81]", transitive_headers=True)
        self.requires("onetbb/[>=2021.8]")
        self.requires("xsimd/[>=8.1]")
        if self.settings.arch == "x86_64":
            self.requires("onednn/[>=2.6]")
            self.requires("xbyak/[>=6.0]")

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "BENCH", "EXAMPLES", "DISTRIBUTED", "ONNX"):
            toolchain.cache_variables[f"REEL_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_find_mode", "none")  # Reel's own package files
        self.cpp_info.builddirs = ["lib/cmake/reel"]
