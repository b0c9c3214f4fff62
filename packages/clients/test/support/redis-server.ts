export {
  type RedisServer,
  redisProgram,
  redisServer,
  startRedis,
} from '../../../../test/support/redis-server.ts'
