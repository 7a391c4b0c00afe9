package cmd

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/helmsrc/helmsrc/internal/config"
	"github.com/helmsrc/helmsrc/internal/console"
	"github.com/helmsrc/helmsrc/internal/exit"
	"github.com/helmsrc/helmsrc/internal/listing"
	"github.com/helmsrc/helmsrc/internal/load"
	"github.com/helmsrc/helmsrc/internal/publish"
	"github.com/helmsrc/helmsrc/internal/reconcile"
	"github.com/helmsrc/helmsrc/internal/session"
)

// Run runs one command line and returns its exit code. It never exits the process, and reads from the process only through
// env.
func Run(ctx context.Context, env *Env) int {
	if !readByRunner(env) {
		return runCommand(ctx, env)
	}
	log, logged := console.NewRunnerLog(env.Stdout), *env
	logged.Stdout = log
	code := runCommand(ctx, &logged)
	if err := log.Close(); err != nil {
		console.New(env.Stderr).Fail(err)
		return exit.Worst(code, exit.Failed)
	}
	return code
}

// readByRunner reports whether GitHub Actions may read stdout: always, unless stdout is a regular file. A pipe may lead there.
func readByRunner(env *Env) bool {
	return env.Getenv("GITHUB_ACTIONS") == "true" && (env.Kept == nil || !env.Kept())
}

func runCommand(ctx context.Context, env *Env) int {
	a := &app{env: env, now: env.clock(), started: env.Now(), config: config.Config{Getenv: env.Getenv}, help: helpPages{terminal: env.Terminal}}
	a.began = a.now()
	a.console = console.New(env.Stderr)
	a.publisher, a.lister = publish.Publisher{Console: a.console, Getenv: env.Getenv, Stdout: env.Stdout}, listing.Lister{Console: a.console}
	a.worker = session.Worker{Reader: load.Reader{Console: a.console, Getenv: env.Getenv, Stdin: env.Stdin}, Edges: reconcile.Edges{Dial: env.Dial, Getenv: env.Getenv, Now: a.now, UserAgent: "helmsrc/" + versionString()}}
	root := newRootCommand(a)
	root.SetArgs(a.help.takeAll(env.Args))
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	c, err := root.ExecuteContextC(ctx)
	a.console.Unite()
	if err == nil {
		return a.code
	}
	err = advised(ctx, err)
	if unusable, ok := errors.AsType[*load.UnusableError](err); ok {
		return a.reportFailure(c, err, unusable.Code)
	}
	a.console.Fail(err)
	code := exit.CodeOf(err)
	if code == exit.Failed {
		code = exit.Worst(exit.Failed, a.code)
	}
	return a.reportFailure(c, err, code)
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "helmsrc",
		Short: "Resolve, fetch and verify the Helm charts of Flux manifests, without a cluster",
		Long: `helmsrc reads Flux HelmRelease and HelmChart manifests with their sources
(HelmRepository, OCIRepository, GitRepository, Bucket) and the Secrets that they name,
resolves versions, fetches, packages and checks the charts into a local artifacts
directory, and prints each object with the status that Flux's controllers would give it.

It needs no cluster, no kubeconfig and no helm binary.

Every flag has an environment variable (--artifacts-dir is HELMSRC_ARTIFACTS_DIR),
and may be set in a file ` + config.Name + `: see 'helmsrc config --help'.`,
		Example:       "  helmsrc fetch -f helmchart.yaml\n  helmsrc validate -R -f clusters/",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSubcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			a.command = cmd.Name()
			from, err := a.config.Configure(cmd, namesFiles(args))
			if err != nil {
				return err
			}
			options, err := consoleOptions(cmd.Flags(), from, a.env)
			if err != nil {
				return err
			}
			a.console.Configure(options)
			if err := checkChoices(cmd.Flags()); err != nil {
				return err
			}
			a.paper = paperOf(cmd.Flags(), a.env)
			warnInsecure(cmd, a.console)
			if a.env.Environ == nil {
				return nil
			}
			for _, text := range a.config.UnknownVariables(a.env.Environ()) {
				a.console.Warn(text)
			}
			return nil
		},
	}
	root.Version = versionString()
	root.SetVersionTemplate(versionLine())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := a.env.Args; cmd == root && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
			return noSubcommand(cmd, args) // the flag belongs to a misspelled command
		}
		return &exit.UsageError{Err: err, Advice: flagHint(cmd, err)}
	})
	root.SetHelpCommand(newHelpCommand())
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.help.page(cmd) })
	root.SetUsageFunc(a.help.usage)
	root.AddGroup(commandGroups()...)
	addConsoleFlags(root.PersistentFlags())
	config.AddFlags(root.PersistentFlags())
	named, args := commandsByName(), a.env.Args
	a.config.Root = sync.OnceValue(func() *cobra.Command {
		for _, name := range slices.Sorted(maps.Keys(named)) {
			root.AddCommand(named[name](a))
		}
		root.AddCommand(hiddenCommands(a)...)
		callAs(root, a.env.Program)
		return root
	})
	// The flags of all commands take a millisecond: if the command line begins with a command, the rest is added only when it
	// is needed.
	if len(args) > 0 && named[args[0]] != nil {
		root.AddCommand(named[args[0]](a))
		delete(named, args[0])
		callAs(root, a.env.Program)
	} else {
		a.config.Root()
	}
	if completing(args) {
		a.addCompletions(root)
	}
	return root
}

// commandsByName returns the functions that make the commands.
func commandsByName() map[string]func(*app) *cobra.Command {
	return map[string]func(*app) *cobra.Command{
		"fetch":      newFetchCommand,
		"resolve":    newResolveCommand,
		"verify":     newVerifyCommand,
		"lock":       newLockCommand,
		"bundle":     newBundleCommand,
		"mirror":     newMirrorCommand,
		"validate":   newValidateCommand,
		"plan":       newPlanCommand,
		"template":   newTemplateCommand,
		"values":     newValuesCommand,
		"outdated":   newOutdatedCommand,
		"versions":   newVersionsCommand,
		"why":        newWhyCommand,
		"tree":       newTreeCommand,
		"update":     newUpdateCommand,
		"migrate":    newMigrateCommand,
		"explain":    newExplainCommand,
		"artifacts":  newArtifactsCommand,
		"cache":      newCacheCommand,
		"config":     newConfigCommand,
		"version":    newVersionCommand,
		"completion": newCompletionCommand,
	}
}

// newHelpCommand returns the help command of cobra, with an error for words that are not a command.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var found []cobra.Completion
			if about, _, err := c.Root().Find(args); err == nil {
				for _, sub := range about.Commands() {
					if sub.IsAvailableCommand() {
						found = append(found, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return found, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err == nil {
				err = noSubcommand(about, rest)
			}
			if err != nil {
				return err
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

// warnInsecure warns on each run of a command that server certificates are not verified.
func warnInsecure(c *cobra.Command, to *console.Console) {
	if skip, err := c.Flags().GetBool(config.InsecureFlag); err == nil && skip {
		to.Warn("--" + config.InsecureFlag + ": server certificates are not verified, so the answers may come from anyone; logins of this machine are not used")
	}
}

// programName returns the name by which people call the program, from the first word of its command line: an executable called
// flux-helmsrc is the plugin of the Flux CLI that is called "flux helmsrc". kubectl has plugins, too.
func programName(arg0 string) string {
	name := filepath.Base(filepath.FromSlash(arg0))
	if ext := filepath.Ext(name); strings.EqualFold(ext, ".exe") {
		name = strings.TrimSuffix(name, ext)
	}
	unprintable := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if name == "" || name == "." || name == string(filepath.Separator) || strings.ContainsFunc(name, unprintable) {
		return "helmsrc"
	}
	if host, plugin, ok := strings.Cut(name, "-"); ok && plugin != "" && (host == "flux" || host == "kubectl") {
		return host + " " + plugin
	}
	return name
}

// callAs replaces the name of the program in the usage texts of all commands.
func callAs(root *cobra.Command, program string) {
	if program == "helmsrc" {
		return
	}
	root.Use = strings.ReplaceAll(program, " ", "-")
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: program}
	var rename func(*cobra.Command)
	rename = func(c *cobra.Command) {
		c.Example = strings.ReplaceAll(c.Example, "  helmsrc ", "  "+program+" ")
		for _, sub := range c.Commands() {
			rename(sub)
		}
	}
	rename(root)
}
