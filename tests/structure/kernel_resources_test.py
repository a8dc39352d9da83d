"""scripts/kernel-resources.py against a piece of what cuobjdump 13.5 said of a build for sm_90."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE.parents[1] / "scripts" / "kernel-resources.py"
REPORT = (HERE / "kernel_resources.txt").read_text()
RECORDED = """\
# A comment
  22      0  AdamWElement bf16 Parameters
  21      0  AdamWElement Parameters fp16
  11      0  FindNonFinite fp16
  96     16  ForwardTile bf16
  32     16  add_column_sums linear_backward bf16 WeightOrder
  34      0  losses_of
  32    336  window_sums
"""


class KernelResources(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.list = pathlib.Path(self.folder.name) / "list"

    def run_script(self, report=REPORT, recorded=RECORDED, *more):
        file = pathlib.Path(self.folder.name) / "report"
        file.write_text(report)
        self.list.write_text(recorded)
        return subprocess.run([sys.executable, SCRIPT, file, self.list, *more], capture_output=True, text=True)

    def changed(self, kernel, resources):
        """The report with other figures for the first kernel whose mangled name holds `kernel`."""
        lines = REPORT.splitlines()
        at = next(i for i, line in enumerate(lines) if kernel in line)
        lines[at + 1] = f"  {resources} SHARED:0 LOCAL:0 CONSTANT[0]:648 TEXTURE:0 SURFACE:0 SAMPLER:0"
        return "\n".join(lines)

    def test_what_is_as_recorded_passes_and_others_kernels_do_not_count(self):
        done = self.run_script()
        self.assertEqual((done.returncode, done.stdout), (0, "7 kernels, 0 with new spills, 0 with slow launches\n"))

    def test_more_stack_fails_and_names_the_kernel(self):
        done = self.run_script(self.changed("ForwardTile", "REG:96 STACK:24"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("spills: ForwardTile bf16: 24 bytes of stack, recorded 16\n", done.stdout)

    def test_a_new_kernel_may_not_spill(self):
        line = "  96     16  ForwardTile bf16\n"
        self.assertEqual(self.run_script(REPORT, RECORDED.replace(line, "")).returncode, 1)
        line = "  11      0  FindNonFinite fp16\n"
        done = self.run_script(REPORT, RECORDED.replace(line, ""))
        self.assertEqual(done.returncode, 0)
        self.assertIn("new: FindNonFinite fp16: 11 registers\n", done.stdout)

    def test_other_registers_and_less_stack_are_told(self):
        done = self.run_script(self.changed("window_sums", "REG:40 STACK:0"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("changed: window_sums: 40 registers and 0 bytes of stack, recorded 32 and 336\n", done.stdout)

    def test_kernels_that_are_gone_are_told(self):
        done = self.run_script(REPORT, RECORDED + "  10      0  Fill\n")
        self.assertEqual(done.returncode, 0)
        self.assertIn("gone: Fill\n", done.stdout)

    def test_of_one_name_the_most_counts(self):
        other = REPORT + REPORT.replace("STACK:16", "STACK:32")
        self.assertIn("ForwardTile bf16: 32 bytes", self.run_script(other).stdout)

    def test_a_launch_through_constant_memory_fails(self):
        slow = REPORT.replace("33cuda_parallel_launch_local_memory", "36cuda_parallel_launch_constant_memory")
        done = self.run_script(slow)
        self.assertEqual(done.returncode, 1)
        self.assertIn("slow launch: window_sums: ", done.stdout)

    def test_a_report_without_kernels_is_no_success(self):
        done = self.run_script("Fatbin elf code:\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no kernel of ours", done.stderr)

    def test_a_list_that_is_recorded_passes_and_holds_the_same(self):
        done = self.run_script(REPORT, "", "--record")
        self.assertEqual(done.returncode, 0)
        written = self.list.read_text()
        self.assertEqual(sorted(line for line in written.splitlines() if not line.startswith("#")),
                         sorted(line for line in RECORDED.splitlines() if not line.startswith("#")))
        self.assertEqual(self.run_script(REPORT, written).stdout, "7 kernels, 0 with new spills, 0 with slow launches\n")


if __name__ == "__main__":
    unittest.main()
