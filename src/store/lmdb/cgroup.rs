//! The free memory of this process's memory cgroups.
//!
//! The kernel charges a tmpfs page to the memory cgroup of the process that first touches it, and kills a process of a full
//! cgroup. So a store in shared memory must stop before that. A process is in a cgroup of version 1 or 2, and every cgroup above it
//! may have a limit too. From a container, cgroups above its mount are not visible; there the container's own limit binds.

use std::fs;
use std::path::{Path, PathBuf};

/// A limit of this size means no limit: version 1 shows the largest possible number of pages.
const NO_LIMIT: u64 = 1 << 60;

/// The memory cgroups of this process that have a limit, from its own upwards.
#[derive(Debug, Default)]
pub(super) struct Cgroups(Vec<Cgroup>);

/// The use of a cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filling {
    pub(super) path: PathBuf,
    pub(super) limit: u64,
    /// Bytes that the kernel can still give, including the file pages that it can drop.
    pub(super) free: u64,
}

#[derive(Debug)]
struct Cgroup {
    path: PathBuf,
    names: &'static Names,
}

/// The names of a version's files.
#[derive(Debug, PartialEq, Eq)]
struct Names {
    limit: &'static str,
    usage: &'static str,
    /// The fields of `memory.stat` that count pages of files, which the kernel drops before it kills.
    droppable: [&'static str; 2],
}

static VERSION_1: Names = Names {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    droppable: ["total_active_file", "total_inactive_file"],
};

static VERSION_2: Names =
    Names { limit: "memory.max", usage: "memory.current", droppable: ["active_file", "inactive_file"] };

impl Cgroups {
    pub(super) fn of_this_process() -> Self {
        Self::beneath(Path::new("/"))
    }

    /// The cgroups that `proc` and the mounts below `root` show.
    fn beneath(root: &Path) -> Self {
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        let (memberships, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
        let mut found = Vec::new();
        for line in memberships.lines() {
            // hierarchy:controllers:path; version 2 has no controllers here.
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let (kind, names) = match controllers {
                "" => ("cgroup2", &VERSION_2),
                _ if controllers.split(',').any(|name| name == "memory") => ("cgroup", &VERSION_1),
                _ => continue,
            };
            for mount in mounts.lines().filter_map(Mount::parse).filter(|mount| mount.is_of(kind)) {
                let top = root.join(mount.point.trim_start_matches('/'));
                found.extend(mount.levels(&top, path).map(|path| Cgroup { path, names }));
            }
        }
        found.retain(|cgroup| cgroup.limit().is_some());
        Self(found)
    }

    /// The cgroup with the least free memory, if any has a limit.
    pub(super) fn fullest(&self) -> Option<Filling> {
        self.0.iter().filter_map(Cgroup::filling).min_by_key(|filling| filling.free)
    }
}

impl Cgroup {
    fn number(&self, name: &str) -> Option<u64> {
        fs::read_to_string(self.path.join(name)).ok()?.trim().parse().ok()
    }

    fn limit(&self) -> Option<u64> {
        self.number(self.names.limit).filter(|&limit| limit < NO_LIMIT)
    }

    fn filling(&self) -> Option<Filling> {
        let (limit, used) = (self.limit()?, self.number(self.names.usage)?);
        let stat = fs::read_to_string(self.path.join("memory.stat")).unwrap_or_default();
        let is_droppable = |name: &str| self.names.droppable.contains(&name);
        let fields = stat.lines().filter_map(|line| line.split_once(' ')).filter(|(name, _)| is_droppable(name));
        let droppable: u64 = fields.filter_map(|(_, value)| value.trim().parse::<u64>().ok()).sum();
        Some(Filling { path: self.path.clone(), limit, free: limit.saturating_sub(used.saturating_sub(droppable)) })
    }
}

/// A line of `mountinfo`: a cgroup file system, its mounted cgroup, and the mount point.
struct Mount<'l> {
    root: &'l str,
    point: &'l str,
    kind: &'l str,
    options: &'l str,
}

impl<'l> Mount<'l> {
    fn parse(line: &'l str) -> Option<Self> {
        let (place, source) = line.split_once(" - ")?;
        let (mut place, mut source) = (place.split(' ').skip(3), source.split(' '));
        let (root, point) = (place.next()?, place.next()?);
        Some(Self { root, point, kind: source.next()?, options: source.nth(1)? })
    }

    fn is_of(&self, kind: &str) -> bool {
        self.kind == kind && (kind == "cgroup2" || self.options.split(',').any(|option| option == "memory"))
    }

    /// The directories from the cgroup `path` up to the mounted cgroup at `top`.
    fn levels(&self, top: &Path, path: &str) -> impl Iterator<Item = PathBuf> {
        // Where the path leads outside of the mount, the mount is what this process is known by.
        let inside = Path::new(path).strip_prefix(self.root).unwrap_or(Path::new(""));
        let inside = if path.contains("..") { Path::new("") } else { inside };
        let depth = inside.components().count();
        let own: PathBuf = top.components().chain(inside.components()).collect();
        own.ancestors().take(depth + 1).map(Path::to_owned).collect::<Vec<_>>().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// What a machine shows of cgroups: the files, by path.
    fn fullest(files: &[(&str, &str)]) -> Option<(String, u64, u64)> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = Cgroups::beneath(root.path()).fullest()?;
        let path = found.path.strip_prefix(root.path()).unwrap().to_str().unwrap().to_owned();
        Some((path, found.limit, found.free))
    }

    const MOUNT_1: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n";
    const MOUNT_2: &str = "29 22 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn version_2_counts_the_limits_up_the_tree_and_leaves_out_what_can_be_dropped() {
        let files = [
            ("proc/self/cgroup", "0::/web.slice/php.service\n"),
            ("proc/self/mountinfo", MOUNT_2),
            ("sys/fs/cgroup/web.slice/memory.max", "104857600\n"),
            ("sys/fs/cgroup/web.slice/memory.current", "94371840\n"),
            ("sys/fs/cgroup/web.slice/memory.stat", "anon 1\nactive_file 1048576\ninactive_file 2097152\nshmem 9\n"),
            ("sys/fs/cgroup/web.slice/php.service/memory.max", "max\n"),
            ("sys/fs/cgroup/web.slice/php.service/memory.current", "1\n"),
        ];
        assert_eq!(fullest(&files), Some(("sys/fs/cgroup/web.slice".into(), 100 * MIB, 13 * MIB)));
    }

    #[test]
    fn version_1_counts_the_limits_up_the_tree_and_a_huge_number_is_none() {
        let files = [
            ("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/\n"),
            ("proc/self/mountinfo", MOUNT_1),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "67108864\n"),
            ("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1048576\n"),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "33554432\n"),
            ("sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "41943040\n"),
            ("sys/fs/cgroup/memory/a/b/memory.stat", "inactive_file 7\ntotal_inactive_file 9437184\n"),
        ];
        assert_eq!(fullest(&files), Some(("sys/fs/cgroup/memory/a/b".into(), 32 * MIB, MIB)));
    }

    #[test]
    fn a_container_finds_its_own_cgroup_at_the_mount() {
        // Without a cgroup namespace the path is the host's and the mount begins there; with one it may lead out of the mount.
        let mounted = MOUNT_1.replace("0:32 / ", "0:32 /docker/abc ");
        for path in ["4:memory:/docker/abc", "4:memory:/docker/abc/worker", "4:memory:/../other", "4:memory:/elsewhere"]
        {
            let files = [
                ("proc/self/cgroup", path),
                ("proc/self/mountinfo", &*mounted),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "10485760"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576"),
            ];
            assert_eq!(fullest(&files), Some(("sys/fs/cgroup/memory".into(), 10 * MIB, 9 * MIB)), "{path}");
        }
    }

    #[test]
    fn where_nothing_is_limited_or_shown_there_is_no_limit() {
        assert_eq!(fullest(&[]), None);
        assert_eq!(fullest(&[("proc/self/cgroup", "0::/a\n"), ("proc/self/mountinfo", MOUNT_2)]), None);
        assert_eq!(
            fullest(&[("proc/self/cgroup", "nonsense\n:\n"), ("proc/self/mountinfo", "also - nonsense\n")]),
            None
        );
    }
}
