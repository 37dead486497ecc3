//go:build !unix

package mcpclient

import "os/exec"

func ownGroup(*exec.Cmd) {}

func terminate(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
