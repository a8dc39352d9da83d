#include "structure/rules.hpp"
#include "structure/structure_file.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <set>

using namespace kozero::structure;

namespace {

/// How many rules a made-up file of this text breaks.
std::size_t broken(std::string const& path, std::string const& text) { return violations({path, text}).size(); }

std::string include(std::string const& name) { return "#include \"" + name + "\"\n"; }

} // namespace

TEST_CASE("the sources keep to the arrows and homes of doc/structure.txt") {
  auto const files = read_tree(KOZERO_SOURCE_DIR, {"src", "kernels", "io", "app"});
  REQUIRE(files.size() > 100);
  for (auto const& file : files) {
    for (auto const& violation : violations(file)) {
      INFO(violation);
      CHECK(false);
    }
  }
}

TEST_CASE("tests and benchmarks touch device memory as the sources do") {
  for (auto const& file : read_tree(KOZERO_SOURCE_DIR, {"tests", "bench"})) {
    for (auto const& violation : violations_outside(file)) {
      INFO(violation);
      CHECK(false);
    }
  }
}

TEST_CASE("doc/architecture.md shows what doc/structure.txt says") {
  std::string const page = read_text(KOZERO_SOURCE_DIR "/doc/architecture.md");
  INFO("draw it anew: build/ci/tests/structure/draw_structure");
  CHECK(with_blocks_drawn(page, structure()) == page);
}

TEST_CASE("every folder of sources has a place in doc/structure.txt, and every place there is a folder") {
  std::set<std::string> places;
  std::set<std::string> folders;
  for (auto const& folder : structure().folders) places.insert(part_of(folder.path + '/'));
  for (auto const& file : read_tree(KOZERO_SOURCE_DIR, {"src", "kernels", "io", "app"})) {
    folders.insert(part_of(file.path));
  }
  CHECK(places == folders);
}

TEST_CASE("no source file has more than 450 lines") {
  for (auto const& file : read_tree(KOZERO_SOURCE_DIR, {"src", "kernels", "io", "app", "tests"})) {
    INFO(file.path);
    CHECK(std::ranges::count(file.text, '\n') <= 450);
  }
}

TEST_CASE("an include against an arrow is found") {
  CHECK(broken("src/core/a.cpp", include("core/error.hpp")) == 0);
  CHECK(broken("src/core/a.cpp", include("layout/partition.hpp")) == 1);
  CHECK(broken("src/core/a.cpp", "# include <layout/partition.hpp> // why\n") == 1);
  CHECK(broken("src/layout/a.cpp", include("config/config.hpp")) == 1);
  CHECK(broken("src/config/a.cpp", include("layout/partition.hpp")) == 1);
  CHECK(broken("src/comm/a.cpp", include("optim/adamw.hpp")) == 1);
  CHECK(broken("kernels/a.cpp", include("config/config.hpp")) == 1);
  CHECK(broken("src/optim/a.cpp", include("kernels/gemm.hpp")) == 1);
  CHECK(broken("src/model/a.cpp", include("comm/group.hpp")) == 1);
  CHECK(broken("src/model/a.cpp", include("zero/engine.hpp")) == 1);
  CHECK(broken("src/zero/a.cpp", include("model/model.hpp")) == 1);
  CHECK(broken("io/a.cpp", include("model/model.hpp") + include("zero/engine.hpp")) == 2);
  CHECK(broken("src/train/a.cpp", include("zero/engine.hpp") + include("app/commands.hpp")) == 1);
  CHECK(broken("app/a.cpp", include("train/trainer.hpp")) == 0);
  CHECK(broken("src/core/a.cpp", include("error.hpp")) == 1);
  CHECK(broken("src/core/a.cpp", include("../core/error.hpp")) == 1);
  CHECK(broken("src/tools/a.cpp", include("core/error.hpp")) == 1);
}

TEST_CASE("a dependency away from its home is found") {
  CHECK(broken("src/comm/a.cpp", "#include <mpi.h>\n") == 0);
  CHECK(broken("src/core/runtime.cpp", "#include <mpi.h>\n") == 0);
  CHECK(broken("src/comm/a.hpp", "#pragma once\n#include <mpi.h>\n") == 1);
  CHECK(broken("src/core/a.cpp", "#include <mpi.h>\n") == 1);
  CHECK(broken("src/train/a.cpp", "MPI_Barrier(MPI_COMM_WORLD);\n") == 1);
  CHECK(broken("src/core/runtime.cpp", "#include <nccl.h>\n") == 1);
  CHECK(broken("io/a.hpp", "#pragma once\n#include <hdf5.h>\n") == 0);
  CHECK(broken("src/train/a.cpp", "#include <hdf5.h>\n") == 1);
  CHECK(broken("io/a.hpp", "#pragma once\n#include <yaml-cpp/yaml.h>\n") == 1);
  CHECK(broken("io/json.hpp", "#pragma once\n#include <nlohmann/json.hpp>\nusing Json = nlohmann::json;\n") == 0);
  CHECK(broken("io/a.cpp", "#include <nlohmann/json.hpp>\n") == 1);
  CHECK(broken("src/train/a.cpp", "nlohmann::json object;\n") == 1);
  CHECK(broken("app/a.cpp", "#include <fstream>\n") == 1);
  CHECK(broken("app/a.cpp", "std::ofstream(path) << text;\n") == 1);
  CHECK(broken("app/a.cpp", "int const file = ::open(path, 0);\n") == 1);
  CHECK(broken("app/a.cpp", "auto* f = fopen(path, mode);\n") == 1);
  CHECK(broken("app/a.cpp", "auto const corpus = open_corpus(data);\nmetrics.emplace(reopen(x));\n") == 0);
  CHECK(broken("src/model/a.cpp", "#include <oneapi/dnnl/dnnl.hpp>\n") == 1);
  CHECK(broken("src/model/a.cpp", "KokkosBlas::gemm(a);\n") == 1);
  CHECK(broken("src/model/a.cpp", "#include <cublas_v2.h>\n") == 1);
  CHECK(broken("kernels/a.cpp", "#ifdef KOKKOS_ENABLE_CUDA\n#endif\n") == 1);
  CHECK(broken("src/core/a.cpp", "#ifdef KOKKOS_ENABLE_CUDA\n#endif\n") == 0);
  CHECK(broken("src/zero/engine.cpp", "if (config.zero.stage == 3) return;\n") == 1);
  CHECK(broken("src/zero/engine.cpp", "if (config->stage == 3) return;\n") == 1);
  CHECK(broken("src/zero/plan.cpp", "if (config.stage == 3) return;\n") == 0);
  CHECK(broken("src/core/a.cpp", "throw Error(\"raise zero.stage\"); // config.stage\n") == 0);
  CHECK(broken("src/train/a.cpp", "#include <CLI/CLI.hpp>\n") == 1);
  CHECK(broken("src/core/processors.cpp", "#include <hwloc.h>\n") == 1);
  CHECK(broken("src/core/hash.hpp", "#pragma once\n#include <xxhash.h>\n") == 1);
  CHECK(broken("src/core/a.hpp", "// no guard\n") == 1);
}

TEST_CASE("device memory that is touched past core/launch.hpp is found, in tests too") {
  for (std::string const code :
       {"Kokkos::parallel_for(label, policy, functor);\n", "Kokkos::deep_copy(lane, to, from);\n",
        "auto const host = Kokkos::create_mirror_view_and_copy(space, x);\n", "Kokkos::fence();\n", "exec.fence();\n",
        "work(lane.exec());\n", "Kokkos::View<float*> const x;\n"}) {
    INFO(code);
    CHECK(broken("src/zero/a.cpp", code) == 1);
    CHECK(broken("kernels/a.cpp", code) == 1);
    CHECK(broken("src/core/launch.cpp", code) == 0);
    CHECK(violations_outside({"tests/zero/a.cpp", code}).size() == 1);
    CHECK(violations_outside({"bench/a.cpp", code}).size() == 1);
  }
  CHECK(broken("src/zero/a.cpp", "lane.fence(\"norm\");\n") == 0);
  CHECK(broken("kernels/a.cpp", "Kokkos::atomic_fetch_min(first, i); // never Kokkos::fence\n") == 0);
  CHECK(violations_outside({"tests/zero/a.cpp", "MPI_Barrier(MPI_COMM_WORLD);\n"}).empty());
}

TEST_CASE("a family of models that is named outside of its folder is found, in words too") {
  CHECK(broken("src/model/gpt2/a.cpp", include("model/gpt2/layout.hpp") + "Gpt2Head<T> head;\n") == 0);
  CHECK(broken("src/model/families.cpp", include("model/gpt2/family.hpp")) == 0);
  CHECK(broken("src/model/model.cpp", include("model/gpt2/layout.hpp")) == 1);
  CHECK(broken("src/train/a.cpp", "Gpt2Head<T>& head;\n") == 1);
  CHECK(broken("src/plan/a.cpp", "text = \"GPT-2\";\n") == 1);
  CHECK(broken("src/config/a.cpp", "// as in gpt2\n") == 1);
  CHECK(broken("src/config/a.cpp", "// trains GPTs, or nanoGPT's files\n") == 0);
}

TEST_CASE("arrows lead down, and to all below") {
  Structure const house =
      parse_structure("# why\n\nfolder a\n  below b\nstorey\nfolder src/b\n  holds more\n  below c\n"
                      "folder c\n  below\nhome X\n  code \\bX_\n  in src/*.cpp a/x.hpp\n  also y/*\n");
  REQUIRE((house.folders.size() == 3 && house.homes.size() == 1));
  CHECK(house.folder("a")->reached == std::set<std::string>{"a", "b", "c"});
  CHECK(house.folder("b")->reached == std::set<std::string>{"b", "c"});
  CHECK(house.folder("c")->reached == std::set<std::string>{"c"});
  CHECK(house.folder("d") == nullptr);
  CHECK((house.homes[0].holds("src/b/c.cpp") && house.homes[0].holds("a/x.hpp")));
  CHECK((house.homes[0].watches("y/b/c.hpp") && !house.homes[0].watches("src/b/c.cpp")));
  CHECK((!house.homes[0].holds("src/b/c.hpp") && !house.homes[0].holds("x/src/c.cpp")));
  CHECK(with_blocks_drawn("<!-- folders -->\nold\n<!-- /folders -->\n<!-- homes -->\n<!-- /homes -->\nend\n", house) ==
        "<!-- folders -->\n```\n a            ▸ b\n─────────────────\n src/b  more  ▸ c\n c\n```\n<!-- /folders -->\n"
        "<!-- homes -->\n| what | home |\n|---|---|\n| X | `src/*.cpp`, `a/x.hpp` |\n<!-- /homes -->\nend\n");
  CHECK_THROWS(with_blocks_drawn("<!-- folders -->\n", house));
  CHECK_THROWS(parse_structure("folder a\nfolder b\n  below a\n"));
  CHECK_THROWS(parse_structure("folder a\n  below a\n"));
  CHECK_THROWS(parse_structure("folder a\n  belwo b\nfolder b\n"));
  CHECK_THROWS(parse_structure("  holds more\n"));
  CHECK_THROWS(parse_structure("fodler a\n"));
}

TEST_CASE("comments and quotes are not code, and lines stay where they are") {
  CHECK(code_of("a // b\nc") == "a     \nc");
  CHECK(code_of("a /* b\n// c */ d") == "a     \n        d");
  CHECK(code_of("f(\"// \\\" x\") + 1'000 + '\\'' + 'y';") == "f(         ) + 1'000 +      +    ;");
  CHECK(code_of("R\"x(a\" // )\" )x\" b") == std::string(17, ' ') + "b");
  CHECK(code_of("\"/*\" a") == "     a");
  auto const includes =
      includes_of("// #include <a>\n/*\n#include <b>\n*/\n  #  include <c/d.hpp> // e\n#include \"f\"\n");
  REQUIRE(includes.size() == 2);
  CHECK((includes[0].name == "c/d.hpp" && includes[0].line == 5 && !includes[0].quoted));
  CHECK((includes[1].name == "f" && includes[1].line == 6 && includes[1].quoted));
}
