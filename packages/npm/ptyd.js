#!/usr/bin/env node
// The launcher of npm's package: it becomes the binary of the package for this machine, which npm has installed beside this one.
const { spawn } = require('node:child_process')
const { constants } = require('node:os')

let binary
try {
  binary = require.resolve(`@ptyd/${process.platform}-${process.arch}/bin/ptyd`)
} catch {
  console.error(
    `ptyd: there is no package @ptyd/${process.platform}-${process.arch} beside this one: ptyd runs on linux-x64 and linux-arm64, ` +
      'and npm must not leave out optional dependencies'
  )
  process.exit(1)
}
const words = process.argv.slice(2)

if (process.execve) {
  process.execve(binary, [binary, ...words], process.env)
}

// An older Node stays as the parent: it hands on signals, and ends as the binary ends.
let child
const signals = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM']
for (const signal of signals) {
  process.on(signal, () => child.kill(signal))
}
child = spawn(binary, words, { stdio: 'inherit' })
child.on('error', (error) => {
  console.error(`ptyd: ${binary} does not start: ${error.message}`)
  process.exit(1)
})
child.on('exit', (code, signal) => {
  if (signal === null) process.exit(code)
  for (const one of signals) process.removeAllListeners(one)
  // Node ignores the first, and starts its debugger on the second.
  if (signal === 'SIGPIPE' || signal === 'SIGUSR1') process.exit(128 + constants.signals[signal])
  process.kill(process.pid, signal)
})
