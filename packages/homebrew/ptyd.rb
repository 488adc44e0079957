# Homebrew on Linux. `cargo xtask package` writes the addresses and checksums of the archives that it finds.
class Ptyd < Formula
  desc "@DESCRIPTION@"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]
  depends_on :linux

  on_linux do
@ARCHIVES@  end

  def install
    bin.install "ptyd"
    generate_completions_from_executable(bin/"ptyd", "completion")
  end

  test do
    assert_match "hello", shell_output("#{bin}/ptyd run 'echo hello'")
  end
end
